"""Transactions: each request in each state of a transactional id, markers, and extreme values."""

import struct
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.protocol.records.build import stamp_checksum
from tests.support.messages import request
from tests.support.records import batch
from tests.support.wire import error_codes
from tools.differential.case import DISK, Layout, case
from tools.differential.requests import (
    GROUP,
    INIT_PRODUCER_ID_VERSION,
    OFFSETS_VERSION,
    PRODUCE_VERSION,
    TRANSACTION,
    add_offsets,
    add_partitions,
    committed,
    coordinator,
    describe_producers,
    end_txn,
    init_producer,
    metadata,
    offsets,
    produce,
)
from tools.differential.session import Session

_TOPIC = "transactions"
_TRANSIENT = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
}
_OTHER_ID = 999_999
ONE_PARTITION = Layout(("offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1"))


class Producer(NamedTuple):
    producer_id: int
    producer_epoch: int


def _now_ms() -> int:
    return int(time.time() * 1000)


def _names(response: Any) -> list[Any]:
    return sorted(ErrorCode(code).name for code in error_codes(response))


def _valid(producer: Producer) -> Producer:
    return Producer(producer.producer_id, max(producer.producer_epoch, 0))


class Transaction:
    """A transactional id and its producer, as the last response stated it."""

    def __init__(self, session: Session, name: str) -> None:
        self.session = session
        self.name = name
        self.producer = Producer(_OTHER_ID, 0)
        self.sequence = 0

    def at(self, difference: int, producer_id: int | None = None) -> Producer:
        """Return the producer with another epoch."""
        current, epoch = self.producer
        return Producer(current if producer_id is None else producer_id, epoch + difference)

    def init(self) -> "Transaction":
        found = self.session.request(init_producer(self.name), INIT_PRODUCER_ID_VERSION)
        assert not found.error_code, found
        self.producer, self.sequence = Producer(found.producer_id, found.producer_epoch), 0
        return self

    def add(self) -> "Transaction":
        found = self.session.request(add_partitions(self.producer, self.name, _TOPIC, 0), 3)
        assert error_codes(found) == [], found
        return self

    def append(self, version: int) -> "Transaction":
        found = self.session.request(self.records(self.producer), version)
        assert error_codes(found) == [], found
        self.sequence += 1
        return self

    def end(self, version: int, *, committed: bool) -> "Transaction":
        found = self.session.request(end_txn(self.producer, self.name, committed=committed), version)
        assert not found.error_code, found
        if version >= 5:
            self.producer, self.sequence = Producer(found.producer_id, found.producer_epoch), 0
        self.described()
        return self

    def records(self, producer: Producer) -> Message:
        data = batch(
            b"v", timestamp=_now_ms(), transactional=True, base_sequence=self.sequence, **_valid(producer)._asdict()
        )
        return produce(_TOPIC, data, self.name)

    def described(self) -> list[Any]:
        """Return the state once markers are written: its name, the producer, the partitions."""
        describing = request("DescribeTransactions", transactional_ids=[self.name])

        def is_settled(response: Any) -> bool:
            return not response.transaction_states[0].transaction_state.startswith("Prepare")

        (found,) = self.session.wait_for(describing, is_settled).transaction_states
        names = sorted(topic.topic for topic in found.topics)
        return [found.transaction_state, *self.relative(found), found.transaction_start_time_ms > 0, names]

    def relative(self, found: Any) -> list[Any]:
        """Return a producer of a response, with `same` for the current id."""
        symbols = {self.producer.producer_id: "same", -1: -1}
        return [symbols.get(found.producer_id, "other"), found.producer_epoch]

    def try_(self, label: str, message: Message, version: int) -> None:
        response = self.session.request(message, version)
        found: list[Any] = _names(response)
        if hasattr(response, "producer_epoch"):
            found += self.relative(response)
        self.session.note(f"{label} v{version}", [*found, self.described()])


# -- Requests by state -------------------------------------------------------------------------------------------------


def _unknown(transaction: Transaction) -> Transaction:
    return transaction


STATES: dict[str, Callable[[Transaction], Transaction]] = {
    "unknown": _unknown,
    "Empty": lambda one: one.init().init(),
    "Ongoing": lambda one: one.init().init().add(),
    "Ongoing with records": lambda one: one.init().append(12),
    "CompleteCommit": lambda one: one.init().add().append(11).end(4, committed=True),
    "CompleteCommit, epoch raised": lambda one: one.init().append(12).end(5, committed=True),
    "CompleteAbort, epoch raised": lambda one: one.init().append(12).end(5, committed=False),
    "CompleteAbort of an empty transaction": lambda one: one.init().end(5, committed=False),
    "Empty after a raised epoch": lambda one: one.init().append(12).end(5, committed=True).init(),
}


def _end(one: Transaction, producer: Producer, *, committed: bool) -> Message:
    return end_txn(producer, one.name, committed=committed)


def _add(one: Transaction, producer: Producer, *partitions: int) -> Message:
    return add_partitions(producer, one.name, _TOPIC, *partitions)


def _add_of_broker(one: Transaction, producer: Producer, *, verify_only: bool) -> Message:
    topics = [{"name": _TOPIC, "partitions": [0]}]
    transaction = {"transactional_id": one.name, "verify_only": verify_only, "topics": topics} | producer._asdict()
    return request("AddPartitionsToTxn", transactions=[transaction])


def _init_from(one: Transaction, producer: Producer) -> Message:
    fields = producer._asdict() | {"transactional_id": one.name, "transaction_timeout_ms": 50_000}
    return request("InitProducerId", **fields)


def _commit_offsets(one: Transaction, producer: Producer) -> Message:
    topics = [committed(_TOPIC, (0, ""))]
    fields = producer._asdict() | {"transactional_id": one.name, "group_id": one.name, "topics": topics}
    return request("TxnOffsetCommit", **fields)


# Requests of a producer, with versions.
FORMS: dict[str, tuple[Callable[[Transaction, Producer], Message], tuple[int, ...]]] = {
    "commit": (partial(_end, committed=True), (1, 5)),
    "abort": (partial(_end, committed=False), (1, 5)),
    "add": (lambda one, producer: _add(one, producer, 0), (1,)),
    "add offsets": (lambda one, producer: add_offsets(producer, one.name, _TOPIC), (3,)),
    "verify": (partial(_add_of_broker, verify_only=True), (4,)),
    "add of a broker": (partial(_add_of_broker, verify_only=False), (4,)),
    "init": (_init_from, (3, 5)),
    "commit offsets": (_commit_offsets, (3, 5)),
    "produce": (Transaction.records, (10, 12)),
}

_ENDING = ("commit", "abort", "init", "produce")


def _prepare(session: Session) -> None:
    """Create the topic, if it is missing, and wait for the coordinators."""
    if error_codes(session.request(metadata(_TOPIC), 12)):
        session.create_topic(_TOPIC)
    for kind, loaded in (
        (GROUP, request("DescribeGroups", groups=[_TOPIC])),
        (TRANSACTION, request("DescribeTransactions", transactional_ids=[_TOPIC])),
    ):
        for message in (coordinator(_TOPIC, kind), loaded):
            session.wait_for(message, lambda response: not _TRANSIENT & set(error_codes(response)))


Try = tuple[Transaction, str, Message, int]


def _tries(session: Session, title: str, state: str, forms: Iterable[str] = FORMS) -> list[Try]:
    """Return requests, each to a transactional id in this state."""
    tries: list[Try] = []

    def new() -> Transaction:
        return STATES[state](Transaction(session, f"{title}-{state}-{len(tries)}"))

    for form in forms:
        build, versions = FORMS[form]
        for version in versions:
            for epoch, producer_id in ((-1, None), (0, None), (1, None), (0, _OTHER_ID + 1)):
                one = new()
                label = f"{form}, epoch {epoch:+}" if producer_id is None else f"{form}, other id"
                tries.append((one, label, build(one, one.at(epoch, producer_id)), version))
    one = new()
    tries.append((one, "init", init_producer(one.name), INIT_PRODUCER_ID_VERSION))
    for label, partitions in (("unknown partition", (0, 9)), ("no partition", ())):
        one = new()
        tries.append((one, label, _add(one, one.producer, *partitions), 3))
    return tries


def requests_in(session: Session, state: str) -> None:
    _prepare(session)
    for one, label, message, version in _tries(session, "transactions", state):
        one.try_(label, message, version)


for _state in STATES:
    case(ONE_PARTITION, row=_state)(partial(requests_in, state=_state))


@case(Layout(ONE_PARTITION.properties, features=("transaction.version=1",)))
def requests_with_transaction_version_1(session: Session) -> None:
    _prepare(session)
    for state in ("Ongoing", "Ongoing with records", "CompleteCommit, epoch raised", "Empty after a raised epoch"):
        for one, label, message, version in _tries(session, "version 1", state, _ENDING):
            one.try_(f"{state}: {label}", message, version)


@case(Layout(ONE_PARTITION.properties, name="restarted transactions", storages=(DISK,)))
def requests_after_a_restart(session: Session) -> None:
    _prepare(session)
    idempotent = session.request(init_producer(None), INIT_PRODUCER_ID_VERSION).producer_id
    for sequence in range(7):
        session.request(produce(_TOPIC, _data(idempotent, sequence, 1)), PRODUCE_VERSION)
    tries = [(state, *one) for state in list(STATES)[1:] for one in _tries(session, "restarted", state, _ENDING)]
    session.restart()
    session.wait_for_leaders(_TOPIC)
    _prepare(session)
    for state, one, label, message, version in tries:
        one.try_(f"{state}: {label}", message, version)
    for sequence in (6, 5, 0, 7, 6):
        response = session.request(produce(_TOPIC, _data(idempotent, sequence, 1)), PRODUCE_VERSION)
        session.note(f"sequence {sequence}", _names(response))


# -- Markers -----------------------------------------------------------------------------------------------------------

_VERSIONS = (-128, -1, 1, 2, 127)
_SITUATIONS = ("no producer", "open", "ended", "ended by a marker")


def _marker(producer: Producer, topic: str, *, coordinator_epoch: int = 0, transaction_version: int = 0) -> Message:
    topics = [{"name": topic, "partition_indexes": [0]}]
    fields = {"coordinator_epoch": coordinator_epoch, "transaction_version": transaction_version, "topics": topics}
    return request("WriteTxnMarkers", markers=[producer._asdict() | {"transaction_result": True} | fields])


def _in_situation(session: Session, name: str, situation: str) -> Transaction:
    one = Transaction(session, name).init().init().init()
    if situation != "no producer":
        one.add().append(11)
    if situation == "ended":
        one.end(4, committed=True)
    if situation == "ended by a marker":
        session.request(_marker(one.producer, _TOPIC, coordinator_epoch=3), 1)
    return one


@case(ONE_PARTITION)
def markers_by_transaction_version(session: Session) -> None:
    _prepare(session)
    for version, transaction_versions in ((1, (0,)), (2, _VERSIONS)):
        for transaction_version in transaction_versions:
            for situation in _SITUATIONS:
                for epoch in (-1, 0, 1):
                    label = f"{situation}, epoch {epoch:+}, transaction version {transaction_version}, v{version}"
                    one = _in_situation(session, f"markers, {label}", situation)
                    sent = _marker(one.at(epoch), _TOPIC, transaction_version=transaction_version)
                    _note_marker(session, label, one, sent, version)
    for coordinator_epoch in (-1, 0, 2, 3, 4):
        one = _in_situation(session, f"markers, coordinator {coordinator_epoch}", "ended by a marker")
        sent = _marker(one.producer, _TOPIC, coordinator_epoch=coordinator_epoch)
        _note_marker(session, f"coordinator epoch {coordinator_epoch}", one, sent, 1)


@case(ONE_PARTITION)
def markers_of_offsets(session: Session) -> None:
    _prepare(session)
    for transaction_version in _VERSIONS:
        for epoch in (-1, 0, 1):
            one = Transaction(session, f"markers of offsets {transaction_version} {epoch}").init().init()
            assert not error_codes(session.request(_commit_offsets(one, one.producer), 5))
            sent = _marker(one.at(epoch), "__consumer_offsets", transaction_version=transaction_version)
            found = _names(session.request(sent, 2))
            offsets_ = session.request(offsets(one.name, _TOPIC, 0), OFFSETS_VERSION)
            session.note(f"epoch {epoch:+}, transaction version {transaction_version}", [found, error_codes(offsets_)])


def _note_marker(session: Session, label: str, one: Transaction, sent: Message, version: int) -> None:
    found = _names(session.request(sent, version))
    session.note(label, [found, *_state_of(session, one.producer)])


def _state_of(session: Session, producer: Any) -> list[list[int]]:
    described = session.request(describe_producers(_TOPIC, 0), 0).topics[0].partitions[0].active_producers
    return [
        [one.producer_epoch, one.last_sequence, one.coordinator_epoch, int(one.current_txn_start_offset >= 0)]
        for one in described
        if one.producer_id == producer.producer_id
    ]


# -- Extreme values ----------------------------------------------------------------------------------------------------

_LONGEST_MS = 900_000  # transaction.max.timeout.ms


@case(ONE_PARTITION)
def producer_ids_of_extreme_requests(session: Session) -> None:
    _prepare(session)
    name = "transactions-extreme"
    current = Transaction(session, name).init().producer
    last = 2**15 - 1
    for version in (0, INIT_PRODUCER_ID_VERSION):
        for key in (None, "", f"{name}-{version}"):
            for timeout_ms in (-(2**31), -1, 0, 1, _LONGEST_MS, _LONGEST_MS + 1, 2**31 - 1):
                _note_init(session, f"timeout {timeout_ms}", init_producer(key, timeout_ms), version)
    for key in (None, name):
        for producer_id in (-2, -1, 0, current.producer_id, 2**63 - 1):
            for epoch in (-2, -1, 0, last - 1, last):
                fields = {"producer_id": producer_id, "producer_epoch": epoch, "transactional_id": key}
                sent = request("InitProducerId", transaction_timeout_ms=60_000, **fields)
                label = "current" if producer_id == current.producer_id else producer_id
                _note_init(session, f"{key} {label} {epoch}", sent, INIT_PRODUCER_ID_VERSION)


def _note_init(session: Session, label: str, sent: Message, version: int) -> None:
    found = session.request(sent, version)
    session.note(f"{label} v{version}", [ErrorCode(found.error_code).name, found.producer_id < 0, found.producer_epoch])


@case(ONE_PARTITION)
def filters_of_transactions(session: Session) -> None:
    _prepare(session)
    prefix = "filtered."
    for name, start in (("empty", "Empty"), ("ongoing", "Ongoing"), ("done", "CompleteCommit")):
        STATES[start](Transaction(session, prefix + name))
    one = Transaction(session, f"{prefix}last").init()
    producer_id = one.producer.producer_id
    filters: dict[str, dict[str, Any]] = {
        "states": {"state_filters": ["Empty", "Ongoing", "Empty"]},
        "unknown states": {"state_filters": ["empty", "", "Dead", "PrepareEpochFence", "empty"]},
        "states and unknown ones": {"state_filters": ["Empty", "None"]},
        "producer": {"producer_id_filters": [producer_id, producer_id]},
        "producers": {"producer_id_filters": [-1, producer_id, 2**63 - 1]},
        "producer and state": {"producer_id_filters": [producer_id], "state_filters": ["Ongoing"]},
    }
    for duration in (-(2**63), -1, 0, 60_000, 2**63 - 1):
        filters[f"duration {duration}"] = {"duration_filter": duration}
    for pattern in (None, "", "[", "(?<", "*", "filtered", r"filtered\..*", r"filtered\.(e|l).*"):
        filters[f"pattern {pattern}"] = {"transactional_id_pattern": pattern, "state_filters": ["Empty", "None"]}
    for title, fields in filters.items():
        response = session.request(request("ListTransactions", **fields), 2)
        found = [each.transactional_id for each in response.transaction_states]
        listed = sorted(each for each in found if each.startswith(prefix))
        session.note(title, [response.error_code, *sorted(response.unknown_state_filters), listed])


# -- Sequence numbers --------------------------------------------------------------------------------------------------

_LAST = 2**31 - 1
_ATTRIBUTES_AT, _ID_AT, _EPOCH_AT, _SEQUENCE_AT = 21, 43, 51, 53
_TRANSACTIONAL, _CONTROL = 16, 32
# Batches of a producer: first sequence number, number of records, epoch, attributes.
SEQUENCES: dict[str, list[tuple[int, ...]]] = {
    "wrapped within a batch": [(_LAST - 1, 1), (_LAST, 3), (_LAST, 3), (1, 1), (2, 1), (0, 1), (_LAST - 1, 1)],
    "wrapped between batches": [(_LAST, 1), (0, 1), (1, 1), (_LAST, 1), (0, 1), (0, 2), (2, 1)],
    "the last five": [*((one, 1) for one in range(7)), *((one, 1) for one in range(6, -1, -1)), (5, 2), (7, 1)],
    "after a new epoch": [(0, 1), (1, 1), (0, 1, 3), (0, 1, 3), (0, 1), (1, 1, 3), (1, 1, 4), (0, 1, 4), (0, 1, 2)],
    "negative": [(-1, 1), (-2, 1), (-(2**31), 1), (0, 1), (-1, 1), (1, 1)],
    "negative epochs": [(0, 1, -1), (0, 1, -2), (-1, 1, -1), (0, 1, 0), (1, 1, -1), (0, 1, 32767), (1, 1, 32767)],
    "control": [(0, 1, 0, _CONTROL), (0, 1, 0, _CONTROL | _TRANSACTIONAL), (-1, 1, 0, _CONTROL), (0, 1)],
    "not transactional": [(0, 1, 0, _TRANSACTIONAL), (1, 1), (1, 1, 1), (0, 1, 1), (1, 1, 0, _TRANSACTIONAL)],
    "transactional": [(3, 1, 0, _TRANSACTIONAL), (0, 1, 0, _TRANSACTIONAL), (0, 1, 0, _TRANSACTIONAL)],
    "transactional with gaps": [(0, 1, 0, _TRANSACTIONAL), (2, 1, 0, _TRANSACTIONAL), (1, 1, 0, _TRANSACTIONAL)],
    "transactional without an id": [(0, 1, 0, _TRANSACTIONAL, -1), (-1, 1, -1, _TRANSACTIONAL, -1), (0, 1, 0, 0, -1)],
}


def _data(producer_id: int, sequence: int, count: int, epoch: int = 0, attributes: int = 0, other: int = 0) -> bytes:
    data = bytearray(batch(*[b"v"] * count, timestamp=_now_ms()))
    struct.pack_into(">h", data, _ATTRIBUTES_AT, attributes)
    struct.pack_into(">qhi", data, _ID_AT, other or producer_id, epoch, sequence)
    stamp_checksum(data)
    return bytes(data)


@case(ONE_PARTITION)
def batches_of_producers(session: Session) -> None:
    _prepare(session)
    for title, sent in SEQUENCES.items():
        for version in (11, 12):
            one = Transaction(session, f"sequences, {title}, {version}").init()
            if version < 12:
                one.add()
            for fields in sent:
                response = session.request(produce(_TOPIC, _data(one.producer.producer_id, *fields), one.name), version)
                (found,) = response.responses[0].partition_responses
                result = [ErrorCode(found.error_code).name, found.error_message]
                session.note(f"{title} {fields} v{version}", [*result, *_state_of(session, one.producer)])


# -- Several partitions ------------------------------------------------------------------------------------------------

_OWN, _OTHER, _PLAIN, _OLD = "own", "other", "plain", "old"
# The records of partitions 0, 1, ...: of the producer, of another, without a transaction, or of an old epoch.
PARTITIONS: list[tuple[str | None, ...]] = [
    (_OWN, _OWN, _OWN),
    (_OWN, _PLAIN, _OWN),
    (None, _OWN, _PLAIN),
    (_OWN, _OTHER),
    (_OWN, _OLD),
    (_PLAIN, _PLAIN),
    (_OWN, None, None, _OWN),
    (_PLAIN, None, None, _OTHER, _OWN),
]


@case(ONE_PARTITION)
def records_for_several_partitions(session: Session) -> None:
    _prepare(session)
    topic = "transactions-several"
    session.create_topic(topic, 3)
    other = Transaction(session, f"{topic}-other").init()
    for number, sent in enumerate(PARTITIONS):
        for acks in (2, -1):
            for version in (10, 11, 12):
                for added in ((), (0, 2)):
                    one = Transaction(session, f"{topic}-{number}-{acks}-{version}-{len(added)}").init().init()
                    if added:
                        session.request(add_partitions(one.producer, one.name, topic, *added), 3)
                    data = [
                        {"index": index, "records": _records_of(kind, one, other)}
                        for index, kind in enumerate(sent)
                        if kind is not None
                    ]
                    topics = [{"name": topic, "partition_data": data}]
                    fields = {"acks": acks, "timeout_ms": 30_000, "topic_data": topics}
                    producing = request("Produce", transactional_id=one.name, **fields)
                    (found,) = session.request(producing, version).responses
                    results = sorted(
                        [each.index, ErrorCode(each.error_code).name, each.error_message]
                        for each in found.partition_responses
                    )
                    described = request("DescribeTransactions", transactional_ids=[one.name])
                    (state,) = session.request(described).transaction_states
                    partitions = sorted(index for each in state.topics for index in each.partitions)
                    label = f"{sent}, acks {acks}, {len(added)} added, v{version}"
                    session.note(label, [results, state.transaction_state, partitions])


def _records_of(kind: str, one: Transaction, other: Transaction) -> bytes:
    producer_id, epoch = (other if kind == _OTHER else one).producer
    return _data(producer_id, 0, 1, epoch - (kind == _OLD), 0 if kind == _PLAIN else _TRANSACTIONAL)


@case(ONE_PARTITION)
def partitions_of_several_transactions(session: Session) -> None:
    _prepare(session)
    for verify_only in ((True, True, True), (False, False, False), (True, False, True), (False, True, False)):
        for differences in ((0, 0, 0), (-1, 0, 1), (0, 1, 0)):
            for partitions in (((0,), (0,), (0,)), ((0,), (9,), ()), ((0, 9), (0,), (0, 0))):
                label = f"{verify_only}, {differences}, {partitions}"
                begun = [Transaction(session, f"transactions, {label}, {number}").init() for number in range(3)]
                transactions = [
                    one.at(difference)._asdict()
                    | {"transactional_id": one.name, "verify_only": verifies}
                    | {"topics": [{"name": _TOPIC, "partitions": list(added)}]}
                    for one, difference, verifies, added in zip(
                        begun, differences, verify_only, partitions, strict=True
                    )
                ]
                response = session.request(request("AddPartitionsToTxn", transactions=transactions), 5)
                results = {result.transactional_id: _names(result) for result in response.results_by_transaction}
                session.note(label, [[results[one.name], one.described()] for one in begun])
