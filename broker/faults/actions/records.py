"""`corrupt-records` and `duplicate`."""

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Annotated, Literal

from msgspec import Meta

from sluice.broker.faults.requests.fault_execution import FaultExecution, Reply, RequestAction, ResponseFrame, RuleHit
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.fetch import FetchResponse, PartitionData
from sluice.protocol.entities import name_of
from sluice.protocol.error_response import ResponseItem

# Positions in log entries; the checksum's depends on the magic: 2 and above are batches.
_SIZE_AT, _HEAD_BYTES, _MAGIC_AT = 8, 12, 16
_CRC_AT, _CRC_AT_UP_TO_1 = 17, 12
_BATCHES_SINCE = 2
_unpack_size = Struct(">i").unpack_from
_ALL_BITS = 0xFF
_OF_SASL = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


class CorruptRecords(RequestAction, frozen=True, tag="corrupt-records"):
    """Corrupts the checksums (CRC) of batches in Fetch responses, not in the log."""

    def can_hit(self, api_key: int, version: int) -> bool:
        return api_key == ApiKey.FETCH

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        _change_records(intercepted, hit, reply, _corrupted)
        return reply


class Duplicate(RequestAction, frozen=True, tag="duplicate"):
    """Handles a request twice, sends its response twice, or returns records twice."""

    what: Annotated[
        Literal["request", "response", "records"],
        Meta(
            description="request: handled twice, with the second response; response: sent twice;"
            " records: each partition's batches twice in a Fetch response"
        ),
    ]

    def can_hit(self, api_key: int, version: int) -> bool:
        return api_key == ApiKey.FETCH if self.what == "records" else api_key not in _OF_SASL

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        if self.what == "request":
            intercepted.repeat()
        return None

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        if self.what == "records":
            _change_records(intercepted, hit, reply, lambda records: records + records)
        return reply

    def leaving(self, intercepted: FaultExecution, hit: RuleHit, frame: ResponseFrame) -> None:
        if self.what == "response":
            frame.copies += 1


def _change_records(intercepted: FaultExecution, hit: RuleHit, reply: Reply, change: Callable[[bytes], bytes]) -> None:
    assert isinstance(reply, FetchResponse)
    topics_by_id = intercepted.broker.metadata.topics_by_id
    for topic in reply.responses:
        name = topic.topic or name_of(topic.topic_id, topics_by_id)
        for item in topic.partitions:
            if item.records and hit.fault.match.hits_part(ResponseItem(name, item.partition_index)):
                item.records = change(_joined(item))


def _joined(item: PartitionData) -> bytes:
    records = item.records
    return bytes(records) if isinstance(records, bytes | memoryview) else b"".join(records or ())


def _corrupted(records: bytes) -> bytes:
    changed = bytearray(records)
    for at in _entries(records):
        crc_at = _CRC_AT if records[at + _MAGIC_AT] >= _BATCHES_SINCE else _CRC_AT_UP_TO_1
        if at + crc_at < len(changed):
            changed[at + crc_at] ^= _ALL_BITS
    return bytes(changed)


def _entries(records: bytes) -> Iterator[int]:
    """Yield the positions of the entries; the last may be incomplete. An upstream's may be none from some byte on."""
    at, size = 0, 0
    while size >= 0 and at + _MAGIC_AT < len(records):
        yield at
        (size,) = _unpack_size(records, at + _SIZE_AT)
        at += _HEAD_BYTES + size
