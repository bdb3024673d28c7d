"""What the journal keeps of a response: its encoded bytes, without records. returned.py decodes them."""

from collections.abc import Sequence

from sluice.broker.requests.trace import Returned
from sluice.protocol.apis import ApiKey

KEPT_APIS = frozenset(
    {
        ApiKey.PRODUCE,
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.FIND_COORDINATOR,
        ApiKey.JOIN_GROUP,
        ApiKey.SYNC_GROUP,
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        ApiKey.INIT_PRODUCER_ID,
        ApiKey.OFFSET_FETCH,
    }
)
# Responses without records are smaller, but for those about hundreds of partitions or members.
_MOST_BYTES = 4096


def keep(body: Sequence[bytes | memoryview]) -> Returned | None:
    """Return what is kept of an encoded response: its pieces, but sizes of records; None if it is large."""
    if len(body) == 1:
        (whole,) = body
        return bytes(whole) if len(whole) <= _MOST_BYTES else None
    pieces: list[bytes | int] = []
    left = _MOST_BYTES
    for piece in body:
        if type(piece) is bytes:
            left -= len(piece)
            if left < 0:
                return None
            pieces.append(piece)
        else:
            pieces.append(len(piece))  # records are appended by reference
    return tuple(pieces)
