"""Sizes of Produce requests and Fetch responses, from the sizes of their records.

Follows the schemas of ProduceRequest, FetchResponse and RequestHeader; tests compare the sizes with the codec's.
"""

from collections.abc import Sequence

_Topics = Sequence[tuple[str, Sequence[int | None]]]  # topic names with the records' bytes of each partition

_FLEXIBLE_PRODUCE, _FLEXIBLE_FETCH = 9, 12
_TOPIC_IDS_PRODUCE = _TOPIC_IDS_FETCH = 13
_TOPIC_ID_BYTES = 16


def produce_request_size(version: int, client_id: str | None, transactional_id: str | None, topics: _Topics) -> int:
    """Return the charged bytes of a Produce request: the request with its header."""
    flexible = version >= _FLEXIBLE_PRODUCE
    size = 10 + _text(client_id) + flexible  # the header: API, version, correlation id, client id's length, tags
    size += 6 + _array(len(topics), flexible) + flexible  # acks, timeout
    if version >= 3:
        size += _string(transactional_id, flexible)
    for name, partitions in topics:
        size += _topic(name, flexible, by_id=version >= _TOPIC_IDS_PRODUCE) + _array(len(partitions), flexible)
        size += sum(4 + _records(nbytes, flexible) + flexible for nbytes in partitions)
    return size


def fetch_response_size(version: int, topics: Sequence[tuple[str, Sequence[tuple[int | None, int | None]]]]) -> int:
    """Return the charged bytes of a Fetch response: without its header, with the 4 bytes of the size prefix.

    `topics`: names, with the records' bytes and the number of aborted transactions of each partition, or None.
    """
    flexible = version >= _FLEXIBLE_FETCH
    size = 4 + _array(len(topics), flexible) + flexible
    size += 4 * (version >= 1) + 6 * (version >= 7)  # throttle time; error code and session
    each = 14 + 8 * (version >= 4) + 8 * (version >= 5) + 4 * (version >= 11) + flexible
    for name, partitions in topics:
        size += _topic(name, flexible, by_id=version >= _TOPIC_IDS_FETCH) + _array(len(partitions), flexible)
        for nbytes, aborted in partitions:
            size += each + _records(nbytes, flexible)
            if version >= 4:
                size += _array(aborted or 0, flexible) + (aborted or 0) * (16 + flexible)
    return size


def _topic(name: str, flexible: bool, *, by_id: bool) -> int:
    return (_TOPIC_ID_BYTES if by_id else _string(name, flexible)) + flexible


def _string(text: str | None, flexible: bool) -> int:
    nbytes = _text(text)
    return nbytes + (_varint(nbytes + 1) if flexible and text is not None else 1 if flexible else 2)


def _text(text: str | None) -> int:
    return 0 if text is None else len(text.encode())


def _records(nbytes: int | None, flexible: bool) -> int:
    if nbytes is None:
        return 1 if flexible else 4
    return nbytes + (_varint(nbytes + 1) if flexible else 4)


def _array(count: int, flexible: bool) -> int:
    return _varint(count + 1) if flexible else 4


def _varint(value: int) -> int:
    return max(1, -(-value.bit_length() // 7))
