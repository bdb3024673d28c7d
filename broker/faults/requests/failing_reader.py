"""How a fetch finds an error in partitions that are well: where it would read them, so that all else follows from that
as it would from a real one: a long poll ends, a session notes it, other partitions are read.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sluice.broker.faults.matching.error_answers import Where
from sluice.broker.replica.fetch_session import WantedPartition
from sluice.broker.replica.partition_reader import PartitionReader, refused
from sluice.protocol.apis.fetch import PartitionData
from sluice.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from sluice.broker.faults.fault import Fault


class RefusingReader(PartitionReader):
    """Reads as another does, but for partitions that rules are about."""

    __slots__ = ("_reader", "_refused")

    def __init__(self, reader: PartitionReader, refused: "Sequence[tuple[Fault, ErrorCode]]") -> None:
        self._reader = reader
        self._refused = refused

    def is_as_told(self, item: WantedPartition) -> bool:
        return self._error(item) is None and self._reader.is_as_told(item)

    def is_at_end(self, item: WantedPartition) -> bool:
        return self._error(item) is None and self._reader.is_at_end(item)

    def bytes_waiting(self, item: WantedPartition) -> int | None:
        return None if self._error(item) is not None else self._reader.bytes_waiting(item)

    def size(self, item: WantedPartition, max_bytes: int, min_one_batch: bool) -> int:
        return 0 if self._error(item) is not None else self._reader.size(item, max_bytes, min_one_batch)

    def read(self, item: WantedPartition, max_bytes: int, min_one_batch: bool) -> tuple[PartitionData, int]:
        code = self._error(item)
        if code is None:
            return self._reader.read(item, max_bytes, min_one_batch)
        return refused(item, code), 0

    def _error(self, item: WantedPartition) -> ErrorCode | None:
        where = Where(item.topic_name, item.request.partition)
        return next((code for fault, code in self._refused if fault.match.hits_part(where)), None)
