"""The metadata of one transactional id, and the steps that change it.

Of all producers with the same transactional id, only the one with the current epoch may write. The state of its
transaction:

    Empty, Complete*  --partition added-->  Ongoing  --EndTxn-->  Prepare*  --markers written-->  Complete*

The record of Prepare* makes the outcome final; only markers are missing. InitProducerId leads from Empty and Complete*
to Empty with a higher epoch; an Ongoing transaction is aborted first.

Metadata is immutable. A step is a function from one value to the next, which becomes current when it is replicated.

With clients of transaction version 2 (KIP-890: EndTxn v5 and later), ending a transaction raises the epoch, so that no
two transactions share one; with older clients, only InitProducerId does. After the last usable epoch the id gets a new
producer id with epoch 0.

Follows Kafka 4.4's TransactionState, TransactionMetadata and TxnTransitMetadata. Different on purpose: fencing a
producer and aborting its transaction is one step, so no transaction is ever in PrepareEpochFence.
"""

from enum import IntEnum

import msgspec
from msgspec.structs import replace

from sluice.broker.metadata.topic import TopicPartition
from sluice.protocol.errors import ErrorCode
from sluice.protocol.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

_MAX_EPOCH = 2**15 - 1
NO_START = -1
LEGACY_CLIENT, EPOCH_RAISING_CLIENT = 0, 2  # transaction versions of clients, derived from request versions


class TransactionState(IntEnum):
    """The numbers are those in `__transaction_state`."""

    EMPTY = 0
    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    COMPLETE_ABORT = 5
    DEAD = 6
    PREPARE_EPOCH_FENCE = 7

    @property
    def label(self) -> str:
        return "".join(word.capitalize() for word in self.name.split("_"))


EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
DEAD = TransactionState.DEAD

# Between transactions; only in these states does an unused id expire.
AT_REST = frozenset({EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT})
VALID_PREVIOUS_STATES = {
    EMPTY: AT_REST,
    ONGOING: AT_REST | {ONGOING},
    PREPARE_COMMIT: frozenset({ONGOING}),
    # A client of version 2 that does not know whether it started a transaction aborts to be sure.
    PREPARE_ABORT: AT_REST | {ONGOING},
    COMPLETE_COMMIT: frozenset({PREPARE_COMMIT}),
    COMPLETE_ABORT: frozenset({PREPARE_ABORT}),
    DEAD: AT_REST,
}


class TransactionMetadata(msgspec.Struct, frozen=True):
    """A transactional id between two steps. Times are wall clock ms."""

    transactional_id: str
    producer_id: int
    timeout_ms: int
    last_update_ms: int
    state: TransactionState = EMPTY
    producer_epoch: int = NO_PRODUCER_EPOCH
    last_producer_epoch: int = NO_PRODUCER_EPOCH  # the previous epoch, to recognize retries
    previous_producer_id: int = NO_PRODUCER_ID  # before the last step
    next_producer_id: int = NO_PRODUCER_ID  # after this transaction, if its epochs are exhausted
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_START
    client_version: int = LEGACY_CLIENT  # transaction version of the client that made the last step

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_exhausted(self.producer_epoch)


def is_exhausted(epoch: int) -> bool:
    """Return whether no client gets a higher epoch: the highest one is reserved for fencing."""
    return epoch >= _MAX_EPOCH - 1


def with_next_epoch(
    current: TransactionMetadata, timeout_ms: int, expected_epoch: int | None, now_ms: int
) -> TransactionMetadata | ErrorCode:
    """Raise the epoch for InitProducerId.

    `expected_epoch`: as sent by the producer (KIP-360). A retry gets the same response; any other epoch is fenced.
    """
    if current.is_epoch_exhausted:
        return ErrorCode.UNKNOWN_SERVER_ERROR  # a retry from before the epoch was exhausted, as in Kafka
    epoch, last_epoch = current.producer_epoch + 1, NO_PRODUCER_EPOCH
    if expected_epoch is not None:
        if expected_epoch == current.producer_epoch or current.producer_epoch == NO_PRODUCER_EPOCH:
            last_epoch = current.producer_epoch
        elif expected_epoch == current.last_producer_epoch:
            epoch, last_epoch = current.producer_epoch, current.last_producer_epoch
        else:
            return ErrorCode.PRODUCER_FENCED
    return _initialized(current, timeout_ms, now_ms, producer_epoch=epoch, last_producer_epoch=last_epoch)


def with_new_producer_id(
    current: TransactionMetadata, producer_id: int, timeout_ms: int, expected_epoch: int | None, now_ms: int
) -> TransactionMetadata:
    last_epoch = NO_PRODUCER_EPOCH if expected_epoch is None else current.producer_epoch
    producer = {"producer_id": producer_id, "producer_epoch": 0, "last_producer_epoch": last_epoch}
    return _initialized(current, timeout_ms, now_ms, **producer)


def _initialized(current: TransactionMetadata, timeout_ms: int, now_ms: int, **producer: int) -> TransactionMetadata:
    nothing = {"partitions": frozenset[TopicPartition](), "start_ms": NO_START}
    return _step(current, EMPTY, now_ms, timeout_ms=timeout_ms, **nothing, **producer)


def with_partitions(
    current: TransactionMetadata, added: frozenset[TopicPartition], client_version: int, now_ms: int
) -> TransactionMetadata:
    return _step(
        current,
        ONGOING,
        now_ms,
        partitions=current.partitions | added,
        start_ms=now_ms if current.state in AT_REST else current.start_ms,
        client_version=client_version,
    )


def fenced(current: TransactionMetadata) -> TransactionMetadata:
    epoch = min(current.producer_epoch + 1, _MAX_EPOCH)
    return replace(current, producer_epoch=epoch, last_producer_epoch=NO_PRODUCER_EPOCH)


def prepared(
    current: TransactionMetadata, state: TransactionState, client_version: int, next_producer_id: int, now_ms: int
) -> TransactionMetadata:
    epoch, last_epoch = current.producer_epoch, current.last_producer_epoch
    if client_version >= EPOCH_RAISING_CLIENT:
        epoch, last_epoch = min(epoch + 1, _MAX_EPOCH), epoch
    return _step(
        current,
        state,
        now_ms,
        producer_epoch=epoch,
        last_producer_epoch=last_epoch,
        next_producer_id=next_producer_id,
        # The abort of a transaction that never started needs a start time, too.
        start_ms=now_ms if current.state in AT_REST else current.start_ms,
        client_version=client_version,
    )


def completed(current: TransactionMetadata, now_ms: int) -> TransactionMetadata:
    state = COMPLETE_COMMIT if current.state == PREPARE_COMMIT else COMPLETE_ABORT
    producer_id, epoch = current.producer_id, current.producer_epoch
    if current.next_producer_id != NO_PRODUCER_ID:
        producer_id, epoch = current.next_producer_id, 0
    return _step(
        current,
        state,
        now_ms,
        producer_id=producer_id,
        producer_epoch=epoch,
        next_producer_id=NO_PRODUCER_ID,
        partitions=frozenset(),
    )


def _step(current: TransactionMetadata, state: TransactionState, now_ms: int, **changes: object) -> TransactionMetadata:
    assert current.state in VALID_PREVIOUS_STATES[state], f"{current} cannot become {state.label}"
    return replace(current, state=state, previous_producer_id=current.producer_id, last_update_ms=now_ms, **changes)
