"""The run of one client under one fault: it produces and consumes before, during and after the fault.

The result holds only what the application observes: acknowledged records, records read, and errors.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import pairwise
from threading import Event, Thread
from time import monotonic, sleep
from typing import Literal, NamedTuple

from sluice import SyncBroker
from sluice.protocol.records.batch import iter_batches
from sluice.protocol.records.record import iter_records
from tests.clients import fault_clients as clients
from tests.clients.fault_settings import SESSION_MS, Settings

LEADER, NEXT_LEADER = 1, 2
BEFORE, AFTER = 3, 3  # records produced without the fault
PAUSE_S = 0.02  # between two records, and between two attempts with a failed client
AFTERMATH_S = 0.4  # time for effects that outlast the fault
PATIENCE_S = 2.0  # the application replaces a client that has only failed for this long
LONGEST_S = 20.0  # time limit of a fault without an end, and of the recovery after it
CONFIG: Mapping[str, str | float] = {
    "sluice.election.delay.ms": 300,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": SESSION_MS,
    "offsets.topic.num.partitions": 1,
}
_EVERYTHING = 1 << 30


Rule = Mapping[str, object]  # as in a rules file
Happening = Literal["", "restarts", "is killed", "moves"]


class Case(NamedTuple):
    """A fault, and the expected reaction of the clients."""

    rule: Rule
    why: str  # reason of the clients' reaction
    lasts_s: float = 0.0  # after the first hit; 0: until the rule's `times` are used up
    patience_s: float = clients.ANSWER_S  # to wait for the outcome of a record
    brokers: int = 1
    config: Mapping[str, str | float] = {}
    settings: Mapping[str, Settings] = {}  # additional ones, by client
    in_group: bool = False  # the consumer is in a group; it commits nothing, so each generation starts again
    also: Rule | None = None  # a second rule that the first one needs to have an effect
    meanwhile: Happening = ""  # happens to the leader when the fault starts
    reads_twice: str = ""  # records that may be read more than once
    loses: str = ""  # acknowledged records that may be lost
    errors: Mapping[str, frozenset[str]] = {}  # that the application may see, by client
    replaced: Mapping[str, frozenset[str]] = {}  # parts that do not recover, by client: `producer`, `consumer`
    ends_with: Mapping[str, str] = {}  # error after which a client must be replaced
    untouched: Mapping[str, str] = {}  # reason why the fault does not affect a client

    @property
    def kind(self) -> str:
        action = self.rule["action"]
        assert isinstance(action, dict)
        return str(action["kind"])


class Found(NamedTuple):
    """The outcome of a run."""

    hits: int
    errors: frozenset[str]  # seen by the application, after the operation: `start`, `send` or `poll`
    replaced: frozenset[str]  # replaced by the application after repeated failures
    stalled_s: float  # longest time without a record that is acknowledged and read
    lost: list[str]  # acknowledged, but not in the log
    unread: list[str]  # in the log at the end, but not read
    repeated: list[str]  # in the log more than once
    read_twice: list[str]  # by one consumer


class Notes:
    """Errors and replacements that an application saw. Each of its threads writes to its own part."""

    def __init__(self) -> None:
        self.errors: set[str] = set()
        self.replaced: set[str] = set()


class Producing:
    """A producer of one record after the other, replaced when it only fails."""

    def __init__(self, make: Callable[[], clients.FaultProducer], notes: Notes, patience_s: float) -> None:
        self._make = make
        self._notes = notes
        self._patience_s = patience_s
        self._client: clients.FaultProducer | None = None
        self._fails_since: float | None = None
        self._sent = 0
        self.acknowledged: dict[str, float] = {}  # time by value

    def send(self, count: int = 1) -> bool:
        """Return whether all records were acknowledged."""
        if self._client is None:
            try:
                self._client = self._make()
            except Exception as error:
                self._notes.errors.add(f"start: {clients.error_name(error)}")
                return False
        values = [f"<{number}>" for number in range(self._sent, self._sent + count)]
        self._sent += count
        try:
            outcomes = self._client.send([value.encode() for value in values], self._patience_s)
        except Exception as error:
            outcomes = [clients.error_name(error)] * count
        self._notes.errors.update(f"send: {name}" for name in outcomes if name)
        now = monotonic()
        self.acknowledged.update((value, now) for value, name in zip(values, outcomes, strict=True) if not name)
        self._give_up_if_it_only_fails(any(outcomes))
        return not any(outcomes)

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()

    def _give_up_if_it_only_fails(self, fails: bool) -> None:
        since, self._fails_since = self._fails_since, None
        if fails:
            self._fails_since = monotonic() if since is None else since
            if monotonic() - self._fails_since > PATIENCE_S:
                self._notes.replaced.add("producer")
                self._fails_since = None
                self.close()


class Consuming:
    """A consumer in a thread, replaced when it only fails."""

    def __init__(self, make: Callable[[], clients.FaultConsumer], notes: Notes, ends_with: str) -> None:
        self._make = make
        self._ends_with = ends_with
        self._notes = notes
        self._closing = Event()
        self.read: list[list[str]] = []  # values of each client
        self.first_read: dict[str, float] = {}  # time by value
        self._thread = Thread(target=self._run)
        self._thread.start()

    def has_read(self, values: Collection[str]) -> bool:
        return self.first_read.keys() >= set(values)

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(PAUSE_S):
            try:
                client = self._make()
            except Exception as error:
                self._notes.errors.add(f"start: {clients.error_name(error)}")
                continue
            self.read.append([])
            self._poll(client, self.read[-1])
            client.close()

    def _poll(self, client: clients.FaultConsumer, read: list[str]) -> None:
        fails_since: float | None = None
        while not self._closing.is_set():
            try:
                values = [value.decode() for value in client.poll()]
            except Exception as error:
                failure = f"poll: {clients.error_name(error)}"
                self._notes.errors.add(failure)
                fails_since = fails_since or monotonic()
                if failure == self._ends_with or monotonic() - fails_since > PATIENCE_S:
                    self._notes.replaced.add("consumer")
                    return
                sleep(PAUSE_S)
                continue
            for value in values:
                fails_since = None
                self.first_read.setdefault(value, monotonic())
                read.append(value)


class Site(NamedTuple):
    """The brokers of a run: where rules act, and whose log is read. They differ if rules act in a proxy."""

    broker: SyncBroker
    upstream: SyncBroker
    values: Callable[[], Counter[str]]  # those in the log


@contextmanager
def own_brokers(case: Case) -> Iterator[Site]:
    with SyncBroker(case.brokers, config={**CONFIG, **case.config}) as broker:
        broker.cluster.create_topic(clients.TOPIC, assignments={clients.PARTITION: range(1, case.brokers + 1)})
        yield Site(broker, broker, partial(values_in_log, broker))


def run(
    client: clients.FaultClient, case: Case, place: Callable[[Case], AbstractContextManager[Site]] = own_brokers
) -> Found:
    """Run one client through one fault, with its own brokers."""
    settings = case.settings.get(client.name, {})
    with place(case) as site:
        bootstrap = site.broker.bootstrap
        notes = Notes()
        group = clients.GROUP if case.in_group else ""
        make = partial(client.consumer, bootstrap, settings, group)
        consuming = Consuming(make, notes, case.ends_with.get(client.name, ""))
        producing = Producing(partial(client.producer, bootstrap, settings), notes, case.patience_s)
        try:
            hits_within_s = 0.0 if client.name in case.untouched else LONGEST_S
            return _run(site, case, notes, producing, consuming, hits_within_s)
        finally:
            producing.close()
            consuming.close()


def _run(
    site: Site, case: Case, notes: Notes, producing: Producing, consuming: Consuming, hits_within_s: float
) -> Found:
    broker = site.broker
    for _ in range(BEFORE):
        assert producing.send(), notes.errors
    _wait(lambda: consuming.has_read(producing.acknowledged))
    assert notes.errors == set(), notes.errors
    began = monotonic()
    rule = {**case.rule, "during": case.lasts_s * 1000} if case.lasts_s else case.rule
    if case.also is not None:
        broker.faults.add(case.also)
    with broker.faults.add(rule) as fault:
        _HAPPENINGS[case.meanwhile](site)
        times = case.rule.get("times", 1)
        assert isinstance(times, int)
        _send(producing, hits_within_s, lambda: fault.hits >= times)
        _send(producing, case.lasts_s + AFTERMATH_S, lambda: False)
        _wait(lambda: producing.send(AFTER))
        _wait(lambda: consuming.has_read(producing.acknowledged))
    in_log = site.values()
    _wait(lambda: consuming.has_read(in_log))
    return Found(
        fault.hits,
        frozenset(notes.errors),
        frozenset(notes.replaced),
        _stalled_s(began, producing, consuming),
        lost=sorted(producing.acknowledged.keys() - in_log.keys()),
        unread=sorted(in_log.keys() - consuming.first_read.keys()),
        repeated=[value for value, times in in_log.items() if times > 1],
        read_twice=[value for read in consuming.read for value, times in Counter(read).items() if times > 1],
    )


def _send(producing: Producing, for_s: float, is_over: Callable[[], bool]) -> None:
    ends = monotonic() + for_s
    while not is_over() and monotonic() < ends:
        producing.send()
        sleep(PAUSE_S)


def _stalled_s(began: float, producing: Producing, consuming: Consuming) -> float:
    through = [max(at, consuming.first_read.get(value, at)) for value, at in producing.acknowledged.items()]
    moments = sorted([began, *(at for at in through if at > began)])
    return max((later - earlier for earlier, later in pairwise(moments)), default=0.0)


def _restart(site: Site) -> None:
    # Uncontrolled: librdkafka's consumer may never reconnect after metadata without a leader just before a shutdown.
    site.broker.cluster.stop(LEADER, controlled=False)
    site.broker.cluster.start(LEADER)


_HAPPENINGS: dict[Happening, Callable[[Site], None]] = {
    "": lambda site: None,
    "restarts": _restart,
    "is killed": lambda site: site.broker.cluster.stop(LEADER, controlled=False),
    "moves": lambda site: site.upstream.cluster.move_leader(clients.TOPIC, clients.PARTITION, NEXT_LEADER),
}


def _wait(is_so: Callable[[], bool]) -> None:
    ends = monotonic() + LONGEST_S
    while not is_so() and monotonic() < ends:
        sleep(PAUSE_S)


def values_in_log(broker: SyncBroker) -> Counter[str]:
    """Count each value in the log. Reads the log directly: a client would need TLS or SASL."""
    cluster = broker._target._started.cluster
    log = cluster.topics[clients.TOPIC].partitions[clients.PARTITION].log
    read = broker._thread.call(lambda: log.read(0, _EVERYTHING, log.log_end_offset, min_one_batch=True))
    return values_of(b"".join(read.parts))


def values_of(records: bytes) -> Counter[str]:
    data = memoryview(records)
    batches = [data[at : at + header.size_in_bytes] for at, header in iter_batches(data)]
    return Counter((record.value or b"").decode() for batch in batches for record in iter_records(batch))
