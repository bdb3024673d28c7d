"""The transaction coordinator: the current producer and the transaction of each transactional id.

A request is checked against the metadata of its transactional id, and the next step is written to
`__transaction_state`. When the record is replicated, the step takes effect and `done` is called. While a step is
pending, other requests fail with the retriable CONCURRENT_TRANSACTIONS. From the decision to commit or abort until all
markers are written, the step to Complete* is pending; the response to EndTxn does not wait for that.

An abort after a timeout, or for a new producer of the same id, also fences the producer.

After loading a partition of `__transaction_state`, the markers of ids in Prepare* are written, possibly again. When the
broker stops leading it, requests waiting for steps fail with NOT_COORDINATOR.

Follows Kafka 4.4's TransactionCoordinator, TransactionStateManager and TransactionMarkerChannelManager. Different on
purpose: markers are written at once, in this process; only their replication takes time.
"""

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from msgspec import Struct

from sluice.broker.controller.broker_node import BrokerNode
from sluice.broker.coordinator.common.coordinator_log import CoordinatorLog, is_for
from sluice.broker.coordinator.common.shards import CoordinatorShards
from sluice.broker.metadata.features import TRANSACTION_VERSION
from sluice.broker.metadata.topic import TRANSACTION_STATE_TOPIC, Partition, TopicPartition
from sluice.broker.replica.delayed_append import await_replication
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from sluice.purgatory.operation import DelayedOperation

from .markers import Marker, MarkerWriter
from .metadata import (
    AT_REST,
    COMPLETE_ABORT,
    COMPLETE_COMMIT,
    DEAD,
    EMPTY,
    EPOCH_RAISING_CLIENT,
    LEGACY_CLIENT,
    ONGOING,
    PREPARE_ABORT,
    PREPARE_COMMIT,
    TransactionMetadata,
    TransactionState,
    completed,
    fenced,
    is_exhausted,
    prepared,
    with_new_producer_id,
    with_next_epoch,
    with_partitions,
)
from .records import key_bytes, recover, value_bytes

_LAST_USABLE_EPOCH = 2**15 - 2
_RETRY_MS = 100  # before the Complete* record is written again
# EndTxn by state and request (True: commit). None: end the transaction; NONE: it has ended that way; otherwise
# INVALID_TXN_STATE. In Prepare*, a step is always pending.
_LEGACY_END_RESULTS: dict[tuple[TransactionState, bool], ErrorCode | None] = {
    (ONGOING, True): None,
    (ONGOING, False): None,
    (COMPLETE_COMMIT, True): ErrorCode.NONE,
    (COMPLETE_ABORT, False): ErrorCode.NONE,
}
# The same for a client whose epoch EndTxn raises. Third: whether it is a retry, with the previous epoch.
_EPOCH_RAISING_END_RESULTS: dict[tuple[TransactionState, bool, bool], ErrorCode | None] = {
    (ONGOING, True, False): None,
    (ONGOING, False, False): None,
    (EMPTY, False, False): None,
    (COMPLETE_COMMIT, False, False): None,
    (COMPLETE_ABORT, False, False): None,
    (COMPLETE_COMMIT, True, True): ErrorCode.NONE,
    (COMPLETE_ABORT, False, True): ErrorCode.NONE,
}


class ProducerResult(NamedTuple):
    error_code: ErrorCode
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH


class _Entry(Struct, eq=False):
    """A transactional id: its metadata, the state after the pending step, and the operations of that step."""

    current: TransactionMetadata
    pending: TransactionState | None = None
    append: DelayedOperation | None = None
    markers: MarkerWriter | None = None


class TransactionCoordinator:
    def __init__(self, host: BrokerNode) -> None:
        config = host.config
        self._host = host
        self._log = CoordinatorLog(host, TRANSACTION_STATE_TOPIC)
        self._max_timeout_ms = config.integer("transaction.max.timeout.ms")
        self._removal_timeout_ms = config.integer("request.timeout.ms")
        self._expiration_ms = config.integer("transactional.id.expiration.ms")
        self._entries: dict[str, _Entry] = {}
        self.shards = CoordinatorShards(host, self._log, self._recover, self._resign)
        host.scheduler.schedule(
            config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms"), self.abort_timed_out
        )
        host.scheduler.schedule(
            config.integer("transaction.remove.expired.transaction.cleanup.interval.ms"), self.remove_expired
        )
        self.shards.load_led()

    @property
    def _version(self) -> int:
        return self._host.features.level(TRANSACTION_VERSION)

    def __iter__(self) -> Iterator[TransactionMetadata]:
        return (entry.current for entry in self._entries.values())

    def get(self, transactional_id: str) -> TransactionMetadata | None:
        entry = self._entries.get(transactional_id)
        return None if entry is None else entry.current

    # -- loading and unloading -----------------------------------------------------------------------------------------

    def _recover(self, partition: Partition) -> None:
        log = partition.log
        if log.log_start_offset == log.log_end_offset:
            return
        loaded = [_Entry(metadata) for metadata in recover(log)]
        self._entries.update((entry.current.transactional_id, entry) for entry in loaded)
        for entry in loaded:
            if entry.current.state in (PREPARE_COMMIT, PREPARE_ABORT):
                self._complete(entry, completed(entry.current, self._now_ms()))

    def _resign(self, partition: Partition) -> None:
        unloaded = [name for name in self._entries if is_for(partition, name)]
        for entry in [self._entries.pop(name) for name in unloaded]:
            if entry.markers is not None:
                entry.markers.cancel()
            if entry.append is not None:
                entry.append.force_complete()

    def _is_loaded(self, entry: _Entry) -> bool:
        return self._entries.get(entry.current.transactional_id) is entry

    # -- requests of producers -----------------------------------------------------------------------------------------

    def _find(self, transactional_id: str) -> _Entry | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        entry = self._entries.get(transactional_id)
        return entry or self.shards.error(transactional_id) or ErrorCode.INVALID_PRODUCER_ID_MAPPING

    def _find_or_create(self, transactional_id: str, timeout_ms: int) -> _Entry | ErrorCode:
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        if not 0 < timeout_ms <= self._max_timeout_ms:
            return ErrorCode.INVALID_TRANSACTION_TIMEOUT
        entry = self._entries.get(transactional_id)
        if entry is None:
            error = self.shards.error(transactional_id)
            if error:
                return error
            created = TransactionMetadata(transactional_id, self._host.new_producer_id(), timeout_ms, self._now_ms())
            entry = self._entries[transactional_id] = _Entry(created)
        return entry

    def init_producer_id(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: tuple[int, int] | None,
        done: Callable[[ProducerResult], None],
    ) -> None:
        """Raise the epoch of a producer; fence the previous producer of the id and abort its transaction.

        `expected`: the producer's current id and epoch (KIP-360).
        """
        entry = self._find_or_create(transactional_id, timeout_ms)
        if isinstance(entry, ErrorCode):
            done(ProducerResult(entry))
            return
        current = entry.current
        if entry.pending is not None:
            done(ProducerResult(ErrorCode.CONCURRENT_TRANSACTIONS))
        elif expected is not None and not _is_current_producer(current, *expected):
            done(ProducerResult(ErrorCode.PRODUCER_FENCED))
        elif current.state == ONGOING:
            # The producer gets its epoch on a retry.
            self._fence(entry, lambda code: done(ProducerResult(code or ErrorCode.CONCURRENT_TRANSACTIONS)))
        else:
            target = self._with_new_epoch(current, timeout_ms, None if expected is None else expected[1])
            if isinstance(target, TransactionMetadata):
                granted = ProducerResult(ErrorCode.NONE, target.producer_id, target.producer_epoch)
                self._write_step(entry, target, lambda code: done(ProducerResult(code) if code else granted))
            else:
                done(ProducerResult(target))

    def _with_new_epoch(
        self, current: TransactionMetadata, timeout_ms: int, expected_epoch: int | None
    ) -> TransactionMetadata | ErrorCode:
        if current.is_epoch_exhausted and expected_epoch in (None, current.producer_epoch):
            new_id = self._host.new_producer_id()
            return with_new_producer_id(current, new_id, timeout_ms, expected_epoch, self._now_ms())
        return with_next_epoch(current, timeout_ms, expected_epoch, self._now_ms())

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: frozenset[TopicPartition],
        client_version: int,
        done: Callable[[ErrorCode], None],
    ) -> None:
        """Add all partitions or none; the first ones start the transaction."""
        entry = self._find(transactional_id)
        if isinstance(entry, ErrorCode):
            done(entry)
        elif entry.pending is not None:
            # Checked before the producer id, which may be the new one from the response to EndTxn.
            done(ErrorCode.CONCURRENT_TRANSACTIONS)
        elif code := _producer_error(entry.current, producer_id, producer_epoch):
            done(code)
        elif entry.current.state == ONGOING and partitions <= entry.current.partitions:
            done(ErrorCode.NONE)
        else:
            self._write_step(entry, with_partitions(entry.current, partitions, client_version, self._now_ms()), done)

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: frozenset[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        entry = self._find(transactional_id)
        if isinstance(entry, ErrorCode):
            return dict.fromkeys(partitions, entry)
        code = _producer_error(entry.current, producer_id, producer_epoch)
        if not code and entry.current.state in (PREPARE_COMMIT, PREPARE_ABORT):
            code = ErrorCode.CONCURRENT_TRANSACTIONS
        if code:
            return dict.fromkeys(partitions, code)
        added = entry.current.partitions
        return {one: ErrorCode.NONE if one in added else ErrorCode.TRANSACTION_ABORTABLE for one in partitions}

    def end_transaction(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        client_version: int,
        done: Callable[[ProducerResult], None],
    ) -> None:
        """Commit or abort; a client of transaction version 2 gets the epoch of its next transaction."""
        entry = self._find(transactional_id)
        if isinstance(entry, ErrorCode):
            done(ProducerResult(entry))
            return
        raises_epoch = client_version >= EPOCH_RAISING_CLIENT
        end_error = _epoch_raising_end_error if raises_epoch else _legacy_end_error
        code = end_error(entry, producer_id, producer_epoch, committed)
        if code is None:
            self._prepare(entry, entry.current, committed, client_version, done)
        elif code or not raises_epoch:
            done(ProducerResult(code))
        else:
            done(ProducerResult(code, entry.current.producer_id, entry.current.producer_epoch))

    # -- ends of transactions ------------------------------------------------------------------------------------------

    def _fence(self, entry: _Entry, done: Callable[[ErrorCode], None]) -> None:
        current, version = entry.current, self._version
        if version < EPOCH_RAISING_CLIENT:
            current, version = fenced(current), LEGACY_CLIENT
        self._prepare(entry, current, False, version, lambda result: done(result.error_code))

    def _prepare(
        self,
        entry: _Entry,
        current: TransactionMetadata,
        committed: bool,
        client_version: int,
        done: Callable[[ProducerResult], None],
    ) -> None:
        next_producer_id = NO_PRODUCER_ID
        if client_version >= EPOCH_RAISING_CLIENT and current.is_epoch_exhausted:
            next_producer_id = self._host.new_producer_id()
        state = PREPARE_COMMIT if committed else PREPARE_ABORT
        target = prepared(current, state, client_version, next_producer_id, self._now_ms())

        def decided(code: ErrorCode) -> None:
            if code:
                done(ProducerResult(code))
                return
            complete = completed(target, self._now_ms())
            if client_version >= EPOCH_RAISING_CLIENT:
                done(ProducerResult(code, complete.producer_id, complete.producer_epoch))
            else:
                done(ProducerResult(code))
            self._complete(entry, complete)

        self._write_step(entry, target, decided)

    def _complete(self, entry: _Entry, complete: TransactionMetadata) -> None:
        current = entry.current
        entry.pending = complete.state
        marker = Marker(
            current.producer_id,
            current.producer_epoch,
            current.state == PREPARE_COMMIT,
            self._log.partition_of(current.transactional_id).leader_epoch,
            current.client_version,
        )

        def written() -> None:
            entry.markers = None
            self._write_step(entry, complete, lambda code: self._completed(entry, complete, code))

        entry.markers = MarkerWriter(self._host, current.transactional_id, marker, written)
        entry.markers.write(current.partitions)

    def _completed(self, entry: _Entry, complete: TransactionMetadata, code: ErrorCode) -> None:
        def again() -> None:
            if self._is_loaded(entry):
                self._write_step(entry, complete, lambda code: self._completed(entry, complete, code))

        if code == ErrorCode.COORDINATOR_NOT_AVAILABLE:  # the markers are written, so retry
            entry.pending = complete.state
            self._host.scheduler.schedule_once(_RETRY_MS, again)

    # -- timeouts ------------------------------------------------------------------------------------------------------

    def abort_timed_out(self) -> None:
        now_ms = self._now_ms()
        for entry in list(self._entries.values()):
            current = entry.current
            if entry.pending is None and current.state == ONGOING and current.start_ms + current.timeout_ms < now_ms:
                self._fence(entry, _ignore)
        self._host.actions.complete()

    def remove_expired(self) -> None:
        oldest_ms = self._now_ms() - self._expiration_ms
        for entry in list(self._entries.values()):
            current = entry.current
            if entry.pending is None and current.state in AT_REST and current.last_update_ms <= oldest_ms:
                self._remove(entry)

    def _remove(self, entry: _Entry) -> None:
        transactional_id = entry.current.transactional_id

        def written(code: ErrorCode) -> None:
            entry.pending = None
            if not code:
                self._record_change(entry.current, DEAD, entry.current)
                del self._entries[transactional_id]

        entry.pending = DEAD
        self._append(entry, None, self._removal_timeout_ms, written)

    # -- the log -------------------------------------------------------------------------------------------------------

    def _write_step(self, entry: _Entry, target: TransactionMetadata, done: Callable[[ErrorCode], None]) -> None:
        def written(code: ErrorCode) -> None:
            entry.pending = None
            if not code:
                self._record_change(entry.current, target.state, target)
                entry.current = target
            done(code)

        entry.pending = target.state
        self._append(entry, value_bytes(target, self._version), target.timeout_ms, written)

    def _append(self, entry: _Entry, value: bytes | None, timeout_ms: int, done: Callable[[ErrorCode], None]) -> None:
        transactional_id = entry.current.transactional_id
        code = self._log.append(transactional_id, [(key_bytes(transactional_id), value)], self._now_ms())
        if code:
            done(code)
            return
        partition = self._log.partition_of(transactional_id)
        leader_epoch = partition.leader_epoch

        def replicated(lost: Collection[Partition]) -> None:
            entry.append = None
            if not self._is_loaded(entry) or partition.leader_epoch != leader_epoch:
                done(ErrorCode.NOT_COORDINATOR)
            else:
                done(ErrorCode.COORDINATOR_NOT_AVAILABLE if lost else ErrorCode.NONE)

        required = {partition: partition.log.log_end_offset}
        waiting = await_replication(self._host.replicas, required, timeout_ms, replicated)
        if waiting is not None:
            entry.append = waiting

    def _record_change(self, before: TransactionMetadata, state: TransactionState, after: TransactionMetadata) -> None:
        journal = self._host.journal
        if journal is not None and state is not before.state:
            journal.add_cluster_event(
                "transaction-state",
                self._host.node_id,
                transactional_id=before.transactional_id,
                producer_id=after.producer_id,
                producer_epoch=after.producer_epoch,
                before=before.state.label,
                after=state.label,
            )

    def _now_ms(self) -> int:
        return self._host.clock.wall_ms()


def _is_current_producer(current: TransactionMetadata, producer_id: int, epoch: int) -> bool:
    # The epoch is checked when it is raised.
    return (
        current.producer_epoch == NO_PRODUCER_EPOCH  # no producer is initialized: the id expired
        or producer_id == current.producer_id
        or (producer_id == current.previous_producer_id and is_exhausted(epoch))  # the response was lost
    )


def _producer_error(current: TransactionMetadata, producer_id: int, producer_epoch: int) -> ErrorCode:
    if current.producer_id != producer_id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if current.producer_epoch != producer_epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE


def _legacy_end_error(entry: _Entry, producer_id: int, producer_epoch: int, committed: bool) -> ErrorCode | None:
    current = entry.current
    if code := _producer_error(current, producer_id, producer_epoch):
        return code
    if entry.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    return _LEGACY_END_RESULTS.get((current.state, committed), ErrorCode.INVALID_TXN_STATE)


def _epoch_raising_end_error(entry: _Entry, producer_id: int, producer_epoch: int, committed: bool) -> ErrorCode | None:
    current = entry.current
    if entry.pending is not None:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    repeats_over_rotation = (
        current.previous_producer_id == producer_id
        and producer_epoch == _LAST_USABLE_EPOCH
        and current.producer_epoch == 0
    )
    if current.producer_id != producer_id and not repeats_over_rotation:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    repeats = repeats_over_rotation or current.producer_epoch == producer_epoch + 1
    has_ended = current.state in (COMPLETE_COMMIT, COMPLETE_ABORT)
    if producer_epoch != current.producer_epoch and not (has_ended and repeats):
        return ErrorCode.PRODUCER_FENCED
    return _EPOCH_RAISING_END_RESULTS.get((current.state, committed, repeats), ErrorCode.INVALID_TXN_STATE)


def _ignore(code: ErrorCode) -> None:
    """Ignore an error; the next check aborts the transaction again."""
