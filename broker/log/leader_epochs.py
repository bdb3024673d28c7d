"""Leader epochs of a log and their start offsets: Kafka's LeaderEpochFileCache (KIP-101, KIP-320)."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class LeaderEpochs:
    """Epochs with their start offsets; both ascend."""

    def __init__(self) -> None:
        self._epochs: list[int] = []
        self._start_offsets: list[int] = []
        self.latest = UNDEFINED_EPOCH

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._epochs, self._start_offsets, strict=True)

    def assign(self, epoch: int, start_offset: int) -> None:
        """Start an epoch at an offset; remove contradicting entries."""
        assert min(epoch, start_offset) >= 0
        if epoch == self.latest and start_offset >= self._start_offsets[-1]:
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._start_offsets[-1] >= start_offset):
            self._epochs.pop()
            self._start_offsets.pop()
        self._epochs.append(epoch)
        self._start_offsets.append(start_offset)
        self.latest = epoch

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """Return the greatest known epoch up to `epoch` and the offset after its last record, or (-1, -1).

        An older epoch than all known ones ends where the oldest starts.
        """
        if epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        higher = bisect_right(self._epochs, epoch)
        if higher == len(self._epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        return (self._epochs[higher - 1] if higher else epoch), self._start_offsets[higher]

    def at(self, offset: int) -> int:
        entry = bisect_right(self._start_offsets, offset) - 1
        return self._epochs[entry] if entry >= 0 else UNDEFINED_EPOCH

    def truncate_from_end(self, log_end_offset: int) -> None:
        kept = bisect_left(self._start_offsets, log_end_offset)
        del self._epochs[kept:]
        del self._start_offsets[kept:]
        self.latest = self._epochs[-1] if kept else UNDEFINED_EPOCH

    def truncate_from_start(self, log_start_offset: int) -> bool:
        covered = bisect_right(self._start_offsets, log_start_offset)
        if not covered or (self._start_offsets[covered - 1] == log_start_offset and covered == 1):
            return False
        del self._epochs[: covered - 1]
        del self._start_offsets[: covered - 1]
        self._start_offsets[0] = log_start_offset
        return True
