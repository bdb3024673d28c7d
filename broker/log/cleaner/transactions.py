"""The transactions in the records of a cleaning: Kafka's CleanedTransactionMetadata.

A marker stays while its transaction has records, and delete.retention.ms longer, for read_committed consumers in the
middle of them. Records of aborted transactions are removed.
"""

from collections.abc import Iterable, Iterator

from sluice.broker.log.producer_state import AbortedTransaction
from sluice.protocol.records.batch import BatchHeader
from sluice.protocol.records.build import ABORT, COMMIT
from sluice.protocol.records.record import control_type


class CleanedTransactions:
    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._aborted: Iterator[AbortedTransaction] = iter(sorted(aborted, key=lambda txn: txn.first_offset))
        self._next_aborted = next(self._aborted, None)
        self._ongoing_aborted: dict[int, AbortedTransaction] = {}
        self._ongoing_committed: set[int] = set()
        self._seen: set[int] = set()  # producers of ongoing aborted transactions with a batch
        self.kept: list[AbortedTransaction] = []  # their markers stay because of their records

    def is_useless(self, header: BatchHeader, batch: memoryview) -> bool:
        self._begin_aborted(header.last_offset)
        if header.is_control:
            return self._end(header, batch)
        if not header.is_transactional:
            return False
        if header.producer_id in self._ongoing_aborted:
            self._seen.add(header.producer_id)
            return True
        self._ongoing_committed.add(header.producer_id)
        return False

    def _begin_aborted(self, up_to_offset: int) -> None:
        while self._next_aborted is not None and self._next_aborted.first_offset <= up_to_offset:
            self._ongoing_aborted.setdefault(self._next_aborted.producer_id, self._next_aborted)
            self._next_aborted = next(self._aborted, None)

    def _end(self, header: BatchHeader, batch: memoryview) -> bool:
        if header.record_count == 0:
            return True  # the rest of a marker, kept for the producer's epoch
        kind, producer_id = control_type(batch), header.producer_id
        if kind == COMMIT:
            had_records = producer_id in self._ongoing_committed
            self._ongoing_committed.discard(producer_id)
            return not had_records
        if kind != ABORT:
            return False
        aborted = self._ongoing_aborted.pop(producer_id, None)
        if producer_id not in self._seen:
            return True
        self._seen.discard(producer_id)
        if aborted is not None:
            self.kept.append(aborted)
        return False
