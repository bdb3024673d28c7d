"""State of a partition's idempotent and transactional producers (KIP-98).

For each producer id, the partition stores the epoch, the sequence ranges of the last five batches, and the start of an
open transaction. It checks each batch first:

    the same epoch and exactly the range of one of the five      duplicate: returns the first copy's offsets
    epoch lower than the last seen                               INVALID_PRODUCER_EPOCH
    a new, higher epoch whose first sequence is not 0            OUT_OF_ORDER_SEQUENCE_NUMBER
    the same epoch, not the sequence after the last              OUT_OF_ORDER_SEQUENCE_NUMBER
    an unknown (or expired) producer id                          accepted with any sequence (version 2: only 0)
    not transactional while its transaction is open              INVALID_TXN_STATE
    a marker from a coordinator older than the last              TRANSACTION_COORDINATOR_FENCED
    a marker of transaction version 2 without a higher epoch     INVALID_PRODUCER_EPOCH, except for a repeated marker

Sequence numbers wrap from 2^31 - 1 to 0. A higher epoch discards the five batches, but not the open transaction. Under
transaction version 2, every transaction has a new epoch, and its marker a higher one than its records, so a late marker
cannot end the next transaction (KIP-890).

Before a producer's first transactional batch, the coordinator verifies that the partition is part of the transaction
(broker/handlers/transactions/verification.py). Meanwhile, the partition remembers the lowest sequence under
verification, and rejects a later batch, even if its verification ends first.

The first unstable offset is the start of the oldest transaction that is open, or whose marker is not below the high
watermark. It bounds reads of committed records.

Follows Kafka 4.4's ProducerStateManager, ProducerAppendInfo, ProducerStateEntry, VerificationStateEntry and
TransactionIndex. Kafka's verification guard is not needed: here, no other append can come in between.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Collection, Iterable, Iterator
from itertools import islice
from operator import attrgetter
from struct import Struct

import msgspec

from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import NO_PRODUCER_ID, TRANSACTIONAL_FLAG, BatchHeader
from sluice.protocol.records.build import ABORT, COMMIT
from sluice.protocol.records.invalid import InvalidRecords
from sluice.protocol.records.record import iter_records

_MARKER_KEY, _MARKER_VALUE = Struct(">hh"), Struct(">hi")
NO_EPOCH = -1
NO_OFFSET = -1
MAX_EPOCH = 2**15 - 1
MAX_SEQUENCE = 2**31 - 1
# The limit on batches in flight with idempotence.
BATCHES_TO_RETAIN = 5
_UNKNOWN_VERSION = -1
_RAISES_EPOCHS = 2  # the first transaction version with a new epoch per transaction


class StoredBatch(msgspec.Struct, frozen=True, gc=False):
    """One of a producer's last batches; `timestamp` is its greatest (ms)."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    timestamp: int


class Refusal(msgspec.Struct, frozen=True, gc=False):
    """A rejected batch: Kafka's error code and message."""

    error_code: ErrorCode
    reason: str


class Marker(msgspec.Struct, frozen=True, gc=False):
    """The end of a transaction; `timestamp` is the record's (ms)."""

    aborts: bool
    coordinator_epoch: int
    timestamp: int


def read_marker(batch: memoryview) -> Marker:
    """Decode a control batch: the key has version and type, the value has version and coordinator epoch."""
    record = next(iter(iter_records(batch)), None)
    if record is None or len(record.key or b"") < _MARKER_KEY.size or len(record.value or b"") < _MARKER_VALUE.size:
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, "control batch without a transaction marker")
    _, kind = _MARKER_KEY.unpack_from(record.key or b"")
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"")
    if kind not in (ABORT, COMMIT):
        raise InvalidRecords(ErrorCode.CORRUPT_MESSAGE, f"unknown transaction marker; expected 0 or 1, got {kind}")
    return Marker(kind == ABORT, coordinator_epoch, record.timestamp)


class AbortedTransaction(msgspec.Struct, frozen=True, gc=False):
    """An aborted transaction: readers skip the producer's records from `first_offset` to `last_offset` (the marker).

    Later markers end only transactions that began at `last_stable_offset` or later.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class LastRecord(msgspec.Struct, frozen=True, gc=False):
    """The last data offset of a producer, which compaction must keep; NO_OFFSET: keep the epoch's last marker."""

    last_data_offset: int
    producer_epoch: int


class Verification:
    def __init__(self, epoch: int, sequence: int, raises_epochs: bool, now_ms: int) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.raises_epochs = raises_epochs  # the producer uses transaction version 2
        self.started_ms = now_ms

    def update(self, epoch: int, sequence: int) -> None:
        """Add a batch: a higher epoch resets the state."""
        if epoch > self.epoch:
            self.epoch, self.lowest_sequence = epoch, sequence
        elif epoch == self.epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


class ProducerEntry:
    def __init__(self) -> None:
        self.epoch = NO_EPOCH
        self.coordinator_epoch = NO_EPOCH
        self.last_timestamp = -1
        self.current_txn_first_offset = NO_OFFSET
        self.batches: deque[StoredBatch] = deque(maxlen=BATCHES_TO_RETAIN)

    def find_duplicate(self, header: BatchHeader) -> StoredBatch | None:
        if header.producer_epoch != self.epoch:
            return None
        first_sequence = header.base_sequence
        for batch in self.batches:
            if batch.first_sequence == first_sequence and batch.last_sequence == header.last_sequence:
                return batch
        return None

    def move_to(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()

    def copy(self) -> "ProducerEntry":
        entry = ProducerEntry()
        vars(entry).update(vars(self), batches=self.batches.copy())
        return entry


class ProducerState:
    def __init__(self, partition: str) -> None:
        self._partition = partition
        self._entries: dict[int, ProducerEntry] = {}
        # First offset -> producer id. Offsets only grow, so insertion order is offset order.
        self._ongoing: dict[int, int] = {}
        # First offset -> offset of the marker, until the high watermark has passed the marker.
        self._unreplicated: dict[int, int] = {}
        self._aborted: list[AbortedTransaction] = []  # ordered by marker offset
        self._verifications: dict[int, Verification] = {}

    def __iter__(self) -> Iterator[tuple[int, ProducerEntry]]:
        return iter(self._entries.items())

    def __len__(self) -> int:
        return len(self._entries)

    def check_batch(self, header: BatchHeader, first_offset: int) -> StoredBatch | Refusal | None:
        """Return the stored batch that this one duplicates, the reason to reject it, or None if it can be stored."""
        entry = self._entries.get(header.producer_id)
        if self._verifications:
            verdict = self._check_verified(header, entry, first_offset)
            if verdict is not None:
                return verdict
        if entry is None:
            return self._fenced(header, ProducerEntry(), first_offset) if header.producer_epoch < NO_EPOCH else None
        sequence = header.base_sequence
        if header.producer_epoch == entry.epoch:
            last_sequence = entry.batches[-1].last_sequence if entry.batches else -1
            if sequence != last_sequence + 1:
                repeat = entry.find_duplicate(header)
                if repeat is not None:
                    return repeat
                if not (sequence == 0 and last_sequence == MAX_SEQUENCE) and entry.epoch != NO_EPOCH:
                    return self._out_of_order(header, first_offset, last_sequence)
            if entry.current_txn_first_offset == NO_OFFSET:  # cheaper than a call
                return None
            return self._check_transaction(header, entry, first_offset)
        if header.producer_epoch < entry.epoch:
            return self._fenced(header, entry, first_offset)
        if sequence != 0 and entry.epoch != NO_EPOCH:
            return Refusal(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {header.producer_id} at offset {first_offset} in "
                f"partition {self._partition}: {header.producer_epoch} (request epoch), {sequence} (seq. number), "
                f"{entry.epoch} (current producer epoch)",
            )
        return self._check_transaction(header, entry, first_offset)

    def _check_verified(
        self, header: BatchHeader, entry: ProducerEntry | None, first_offset: int
    ) -> StoredBatch | Refusal | None:
        verification = self._verifications.get(header.producer_id)
        if verification is None:
            return None
        if entry is not None:
            repeat = entry.find_duplicate(header)
            if repeat is not None:
                return repeat
            if header.producer_epoch < entry.epoch:
                return self._fenced(header, entry, first_offset)
        sequence = header.base_sequence
        where = f"sequence number for producer {header.producer_id} at offset {first_offset} in partition"
        where = f"{where} {self._partition}: {sequence} (incoming seq. number)"
        if verification.raises_epochs and sequence != 0 and (entry is None or not entry.batches):
            expected = "Expected sequence 0 for transactions v2 idempotent producer with no existing state."
            return Refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"Invalid {where}. {expected}")
        if sequence > verification.lowest_sequence:
            expected = f"{verification.lowest_sequence} (earliest seen sequence)"
            return Refusal(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, f"Out of order {where}, {expected}")
        return None

    def check_coordinator_batch(self, header: BatchHeader, first_offset: int) -> Refusal | None:
        # Such batches have no sequence numbers.
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return None
        if header.producer_epoch < entry.epoch:
            return self._fenced(header, entry, first_offset)
        return self._check_transaction(header, entry, first_offset)

    def _out_of_order(self, header: BatchHeader, first_offset: int, last_sequence: int) -> Refusal:
        return Refusal(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {header.producer_id} at offset {first_offset} in partition "
            f"{self._partition}: {header.base_sequence} (incoming seq. number), {last_sequence} (current end sequence "
            "number)",
        )

    def _check_transaction(self, header: BatchHeader, entry: ProducerEntry, first_offset: int) -> Refusal | None:
        if entry.current_txn_first_offset == NO_OFFSET or header.is_transactional:
            return None
        return Refusal(
            ErrorCode.INVALID_TXN_STATE,
            f"Expected transactional write from producer {header.producer_id} at offset {first_offset} in partition "
            f"{self._partition}",
        )

    def check_marker(
        self, header: BatchHeader, marker: Marker, first_offset: int, transaction_version: int
    ) -> Refusal | None:
        entry = self._entries.get(header.producer_id)
        epoch = header.producer_epoch
        if entry is not None and epoch < entry.epoch:
            return self._fenced(header, entry, first_offset)
        if transaction_version == _UNKNOWN_VERSION:
            reason = "transactionVersion must be explicitly specified, cannot use default value TV_UNKNOWN"
            return Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, f"{reason} for origin COORDINATOR")
        if entry is None:
            return None
        # Without an open transaction the marker is repeated. A transaction with the highest epoch must be able to end.
        begun = entry.current_txn_first_offset != NO_OFFSET and epoch != MAX_EPOCH
        if transaction_version >= _RAISES_EPOCHS and epoch == entry.epoch and begun:
            return Refusal(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch of producer {header.producer_id} at offset {first_offset} in {self._partition} is {epoch}, "
                f"which is <= the last seen epoch {entry.epoch} (TV{transaction_version})",
            )
        if marker.coordinator_epoch < entry.coordinator_epoch:
            return Refusal(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"Invalid coordinator epoch for producerId {header.producer_id} at offset {first_offset} in partition "
                f"{self._partition}: {marker.coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
            )
        return None

    def _fenced(self, header: BatchHeader, entry: ProducerEntry, first_offset: int) -> Refusal:
        # Kafka checks transactional batches before it knows their offset. "TV-1": records have no transaction version.
        if header.is_transactional:
            reason = (
                f"Epoch of producer {header.producer_id} is {header.producer_epoch}, which is smaller than the last "
                f"seen epoch {entry.epoch}"
            )
        else:
            reason = (
                f"Epoch of producer {header.producer_id} at offset {first_offset} in {self._partition} is "
                f"{header.producer_epoch}, which is < the last seen epoch {entry.epoch} (TV-1)"
            )
        return Refusal(ErrorCode.INVALID_PRODUCER_EPOCH, reason)

    def is_fenced(self, producer_id: int, epoch: int) -> bool:
        entry = self._entries.get(producer_id)
        return entry is not None and epoch < entry.epoch

    def has_ongoing_transaction(self, producer_id: int, epoch: int) -> bool:
        entry = self._entries.get(producer_id)
        return entry is not None and entry.current_txn_first_offset != NO_OFFSET and entry.epoch == epoch

    def start_verification(
        self, producer_id: int, epoch: int, sequence: int, *, raises_epochs: bool, now_ms: int
    ) -> None:
        """Record a batch under verification, with its first sequence, or -1."""
        verification = self._verifications.get(producer_id)
        if verification is None:
            self._verifications[producer_id] = Verification(epoch, sequence, raises_epochs, now_ms)
        else:
            verification.update(epoch, sequence)

    def batch_stored(self, header: BatchHeader, first_offset: int, last_offset: int, max_timestamp: int) -> None:
        entry = self._entries.get(header.producer_id)
        if entry is None:
            entry = self._entries[header.producer_id] = ProducerEntry()
        if header.producer_epoch != entry.epoch:
            entry.move_to(header.producer_epoch)
        entry.batches.append(
            StoredBatch(header.base_sequence, header.last_sequence, first_offset, last_offset, max_timestamp)
        )
        entry.last_timestamp = max_timestamp
        if header.attributes & TRANSACTIONAL_FLAG:
            if entry.current_txn_first_offset == NO_OFFSET:
                entry.current_txn_first_offset = first_offset
                self._ongoing[first_offset] = header.producer_id
            self._verifications.pop(header.producer_id, None)

    def marker_stored(self, header: BatchHeader, marker: Marker, offset: int) -> None:
        """Record a stored marker; without an open transaction it only updates the epochs."""
        producer_id = header.producer_id
        entry = self._entries.get(producer_id)
        if entry is None:
            entry = self._entries[producer_id] = ProducerEntry()
        first_offset = entry.current_txn_first_offset
        if first_offset != NO_OFFSET:
            del self._ongoing[first_offset]
            self._unreplicated[first_offset] = offset
            if marker.aborts:
                stable = next(iter(self._ongoing), offset + 1)
                self._aborted.append(AbortedTransaction(producer_id, first_offset, offset, stable))
        entry.move_to(header.producer_epoch)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.current_txn_first_offset = NO_OFFSET
        entry.last_timestamp = marker.timestamp
        verification = self._verifications.get(producer_id)
        # A producer of version 2 may verify its next transaction, with the marker's epoch, before the marker arrives.
        if verification and not (verification.raises_epochs and verification.epoch == header.producer_epoch):
            del self._verifications[producer_id]

    def last_records(self) -> dict[int, LastRecord]:
        return {
            producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else NO_OFFSET, entry.epoch)
            for producer_id, entry in self._entries.items()
        }

    def first_unstable_offset(self, high_watermark: int) -> int | None:
        """Return the start of the oldest undecided transaction; the high watermark must not decrease."""
        if self._unreplicated:
            for first_offset in [first for first, last in self._unreplicated.items() if last < high_watermark]:
                del self._unreplicated[first_offset]
        ongoing = next(iter(self._ongoing), None)
        unreplicated = min(self._unreplicated, default=None)
        if ongoing is None or unreplicated is None:
            return unreplicated if ongoing is None else ongoing
        return min(ongoing, unreplicated)

    def has_undecided(self) -> bool:
        return bool(self._ongoing or self._unreplicated)

    def aborted_transactions(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        """Return transactions, by marker, that may have records from `offset` up to `upper_offset` (exclusive)."""
        found = []
        for aborted in islice(self._aborted, self._ended_before(offset), None):
            if aborted.first_offset < upper_offset:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_offset:
                break
        return found

    def truncate_from_end(
        self, log_end_offset: int, cut_off: Collection[int], batches: Iterable[tuple[BatchHeader, memoryview]]
    ) -> None:
        """Remove everything from `log_end_offset` on; rebuild the producers in `cut_off` from the other `batches`."""
        aborted = self._aborted[: self._ended_before(log_end_offset)]
        for producer_id in cut_off:
            self._entries.pop(producer_id, None)
            self._verifications.pop(producer_id, None)
        self._ongoing = {first: one for first, one in self._ongoing.items() if one not in cut_off}
        self._unreplicated = {first: last for first, last in self._unreplicated.items() if last < log_end_offset}
        for header, batch in batches:
            if header.producer_id in cut_off:
                self.replay(header, batch)
        self._ongoing = dict(sorted(self._ongoing.items()))
        self._aborted = aborted

    def restore(self, producers: Iterable[tuple[int, ProducerEntry]], aborted: Iterable[AbortedTransaction]) -> None:
        self._entries.update(producers)
        self._ongoing = dict(
            sorted(
                (entry.current_txn_first_offset, producer_id)
                for producer_id, entry in self._entries.items()
                if entry.current_txn_first_offset != NO_OFFSET
            )
        )
        self._aborted.extend(aborted)

    def aborted_between(self, offset: int, upper_offset: int) -> list[AbortedTransaction]:
        return self._aborted[self._ended_before(offset) : self._ended_before(upper_offset)]

    def replay(self, header: BatchHeader, batch: memoryview) -> None:
        if header.producer_id == NO_PRODUCER_ID:
            return
        if header.is_control:
            self.marker_stored(header, read_marker(batch), header.base_offset)
        else:
            self.batch_stored(header, header.base_offset, header.last_offset, header.max_timestamp)

    def replace_aborted(self, start_offset: int, end_offset: int, kept: Iterable[AbortedTransaction]) -> None:
        """Replace the transactions with markers from `start_offset` up to `end_offset` (exclusive)."""
        self._aborted[self._ended_before(start_offset) : self._ended_before(end_offset)] = kept

    def truncate_from_start(self, log_start_offset: int) -> None:
        """Remove aborted transactions without records. Producers stay."""
        del self._aborted[: self._ended_before(log_start_offset)]

    def _ended_before(self, offset: int) -> int:
        return bisect_left(self._aborted, offset, key=attrgetter("last_offset"))

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        since_ms = now_ms - expiration_ms
        self._entries = {
            producer_id: entry
            for producer_id, entry in self._entries.items()
            if entry.current_txn_first_offset != NO_OFFSET or entry.last_timestamp > since_ms
        }
        self._verifications = {
            producer_id: verification
            for producer_id, verification in self._verifications.items()
            if verification.started_ms > since_ms
        }
