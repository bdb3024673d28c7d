"""A reader with injected partition errors, which have the same effects as real ones."""

from collections.abc import Callable

from sluice.protocol.apis.fetch import PartitionData
from sluice.protocol.errors import ErrorCode

from .fetch_session import RequestedPartition
from .partition_reader import PartitionReader, error_data


class FailingReader(PartitionReader):
    __slots__ = ("_error_of", "_reader")

    def __init__(self, reader: PartitionReader, error_of: Callable[[str, int], ErrorCode | None]) -> None:
        """`error_of` receives topic name and index."""
        self._reader = reader
        self._error_of = error_of

    def is_unchanged(self, item: RequestedPartition) -> bool:
        return self._error(item) is None and self._reader.is_unchanged(item)

    def bytes_waiting(self, item: RequestedPartition) -> int | None:
        return None if self._error(item) is not None else self._reader.bytes_waiting(item)

    def size(self, item: RequestedPartition, max_bytes: int, min_one_batch: bool) -> int:
        return 0 if self._error(item) is not None else self._reader.size(item, max_bytes, min_one_batch)

    def read(
        self, item: RequestedPartition, max_bytes: int, min_one_batch: bool, end: int | None = None
    ) -> tuple[PartitionData, int]:
        code = self._error(item)
        if code is None:
            return self._reader.read(item, max_bytes, min_one_batch, end)
        return error_data(item, code), 0

    def _error(self, item: RequestedPartition) -> ErrorCode | None:
        return self._error_of(item.topic_name, item.request.partition)
