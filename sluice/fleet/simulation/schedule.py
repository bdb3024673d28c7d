"""A scenario as segments of time: in each, which brokers run, who leads each partition, and which faults are in force.

The clients use the partitions of the scenario's first topic. Without one, each broker leads a partition for each
other broker, its second replica. Leaders change as in sluice's cluster: at once if a leader is stopped,
`sluice.election.delay.ms` after it was killed. Until then the killed replica is in sync, so other leaders do not
acknowledge records with acks=all. A broker that starts leads only partitions without a leader.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum, auto
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from msgspec import UNSET

from sluice.broker.faults.actions.connections import RefuseConnections, SilentConnections
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.disks import DiskFull
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import BlackHole, Close
from sluice.broker.faults.matching.values import parse_ms
from sluice.broker.faults.rule import Rule
from sluice.broker.scenarios.model import Scenario
from sluice.broker.scenarios.steps.action import LogMessage, Reversal
from sluice.broker.scenarios.steps.brokers import BrokerStep
from sluice.broker.scenarios.steps.faults import RuleAddition, RuleRemoval
from sluice.broker.scenarios.steps.quotas import QuotaAlteration
from sluice.broker.scenarios.steps.topics import InitialTopic, LeaderMove
from sluice.broker.scenarios.timeline import Moment, timeline
from sluice.errors import ScenarioError
from sluice.protocol.errors import ErrorCode
from sluice.quotas.client_quotas import CLIENT_ID

from .arrays import NEVER, US_PER_MS, US_PER_S

NO_LEADER = -1
REQUESTS = 6
CONNECT, METADATA, PRODUCE, FETCH, HEARTBEAT, FIND_COORDINATOR = range(REQUESTS)
APIS = {
    "ApiVersions": CONNECT, "Metadata": METADATA, "Produce": PRODUCE, "Fetch": FETCH, "Heartbeat": HEARTBEAT,
    "FindCoordinator": FIND_COORDINATOR,
}  # fmt: skip


class Effect(IntEnum):
    """What a response, or its absence, means to a client."""

    ANSWERED = 0
    NOT_LEADER = auto()
    RETRIABLE = auto()
    NO_LEADER_KNOWN = auto()
    CLOSED = auto()
    SILENT = auto()
    REFUSED = auto()


_STALE_METADATA = (
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
)
_RETRIABLE = (
    ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
)  # fmt: skip
_OTHERS = ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR
_STEPS = "stop, kill, start, move_leader, fault, remove_fault, quota, remove_quota, say"
_UNUSED = (
    "version", "client_id", "software_name", "software_version", "principal", "listener", "group", "transactional_id",
    "connection_older_than", "connection_younger_than", "request", "after", "until", "during",
)  # fmt: skip
_CONDITIONS = "broker, api, topic, partition, probability, times, on and schedule"
# The simulation continues after the last change of a scenario.
_SHOWN_AFTER_US = 10 * US_PER_S


class FaultWindow(NamedTuple):
    """A fault rule in force: requests of these kinds to these brokers get this outcome, with a probability.

    Args:
        partitions: Those whose Produce and Fetch requests get it.
        schedule: Which of the requests are hit, as `times`, `on` and `schedule` of the rule; None: all.
        delay_us: The shortest and the longest delay; all between them are equally likely.
    """

    kinds: frozenset[int]
    brokers: npt.NDArray[np.bool_]
    partitions: npt.NDArray[np.bool_]
    outcome: Effect
    probability: float
    schedule: tuple[int | None, Sequence[int] | None, str | None] | None
    delay_us: tuple[int, int]


class Segment(NamedTuple):
    from_us: int
    up: npt.NDArray[np.bool_]
    leaders: npt.NDArray[np.int16]  # by partition; NO_LEADER without one
    coordinators: npt.NDArray[np.int16]  # leaders of __consumer_offsets, spread over the brokers
    replicated_us: npt.NDArray[np.int64]  # by partition: until then, acks=all waits for a killed replica
    faults: tuple[FaultWindow, ...]
    quotas: Mapping[str | None, float]  # producer_byte_rate by client id; None: the default


class Schedule(NamedTuple):
    """The course of a scenario. Brokers and partitions are indices from 0."""

    name: str
    brokers: int
    duration_us: int
    segments: list[Segment]
    trigger_us: int  # the first change; the duration if there is none
    healed_us: int  # the last change

    @property
    def starts_us(self) -> npt.NDArray[np.int64]:
        return np.array([segment.from_us for segment in self.segments], dtype=np.int64)

    def fault_ends_us(self) -> dict[int, int]:
        ends: dict[int, int] = {}
        for segment, until_us in zip(
            self.segments, [*(later.from_us for later in self.segments[1:]), NEVER], strict=True
        ):
            ends |= {id(fault): until_us for fault in segment.faults}
        return ends

    def leaders(self) -> npt.NDArray[np.int16]:
        """Return the leaders of all partitions, then the coordinators, by segment."""
        return np.array([(*segment.leaders, *segment.coordinators) for segment in self.segments])

    def next_move_us(self) -> npt.NDArray[np.int64]:
        """Return when each of `leaders` changes next."""
        leaders, starts_us = self.leaders(), self.starts_us
        moves = np.full(leaders.shape, NEVER, dtype=np.int64)
        for index in range(len(leaders) - 2, -1, -1):
            stays = leaders[index] == leaders[index + 1]
            moves[index] = np.where(stays, moves[index + 1], starts_us[index + 1])
        return moves

    def next_stop_us(self) -> npt.NDArray[np.int64]:
        stops = np.full((len(self.segments), self.brokers), NEVER, dtype=np.int64)
        for index in range(len(self.segments) - 2, -1, -1):
            later = self.segments[index + 1]
            stops[index] = np.where(self.segments[index].up & ~later.up, later.from_us, stops[index + 1])
        return stops


def schedule_of(scenario: Scenario) -> Schedule:
    """Return the schedule of a scenario. Raises ScenarioError for steps that the simulation does not have."""
    course = timeline(scenario)
    duration_us = int(course.duration_ms * US_PER_MS)
    if duration_us <= 0:
        raise ScenarioError("duration", "expected more than 0, got 0")
    cluster = _Cluster(scenario, course.config.integer("node.id"), course.config.integer("sluice.election.delay.ms"))
    changes: list[int] = []
    for moment in course.moments:
        at_us = int(moment.at_ms * US_PER_MS)
        if cluster.apply(at_us, moment):
            changes.append(at_us)
    healed_us = changes[-1] if changes else duration_us
    if changes:
        duration_us = max(duration_us, healed_us + _SHOWN_AFTER_US)
    segments = [segment for segment in cluster.segments(duration_us) if segment.from_us < duration_us]
    return Schedule(
        scenario.name, scenario.brokers, duration_us, segments, changes[0] if changes else duration_us, healed_us
    )


class _Cluster:
    def __init__(self, scenario: Scenario, first_node: int, election_delay_ms: int) -> None:
        self._first_node = first_node
        self._brokers = scenario.brokers
        self._election_us = election_delay_ms * US_PER_MS
        self._topic = scenario.topics[0].name if scenario.topics else None
        topic = _replicas(scenario, first_node)
        self._partitions = len(topic)
        self._replicas = [*topic, *spread_replicas(scenario.brokers)]
        self._up = np.ones(scenario.brokers, dtype=np.bool_)
        self._leaders = np.array([replicas[0] for replicas in self._replicas], dtype=np.int16)
        self._faults: dict[int, tuple[Rule, FaultWindow]] = {}
        self._quotas: dict[str | None, float] = {}
        self._quotas_before: dict[int, dict[str | None, float]] = {}
        self._before: dict[int, np.int16] = {}  # the leader before each move
        self._elections: list[tuple[int, int]] = []  # when, and the killed broker
        self._replicated_us = np.zeros(len(self._replicas), dtype=np.int64)
        self._segments: list[Segment] = []
        self._end_segment(0)

    def segments(self, until_us: int) -> list[Segment]:
        self._elect_until(until_us)
        return self._segments

    def apply(self, at_us: int, moment: Moment) -> bool:
        self._elect_until(at_us)
        action = moment.action
        match action:
            case LogMessage() | InitialTopic():
                return False
            case BrokerStep(kind=("stop" | "kill" | "start") as kind, broker=node):
                self._change_broker(at_us, kind, node - self._first_node)
            case LeaderMove(wanted=wanted):
                self._check_topic(moment.path, wanted.topic)
                self._check_partition(moment.path, wanted.partition)
                self._before[id(action)] = self._leaders[wanted.partition]
                self._leaders[wanted.partition] = wanted.to - self._first_node
            case Reversal(of=LeaderMove() as move):
                self._leaders[move.wanted.partition] = self._before[id(move)]
            case RuleAddition(rule=rule):
                self._faults[id(action)] = rule, self._fault(rule, moment.path)
            case Reversal(of=RuleAddition() as addition):
                self._faults.pop(id(addition), None)
            case RuleRemoval(rule_id=rule_id):
                self._faults = {key: pair for key, pair in self._faults.items() if pair[0].id != rule_id}
            case QuotaAlteration():
                self._quotas_before[id(action)] = self._quotas
                self._quotas = _quotas(self._quotas, action, moment.path)
            case Reversal(of=QuotaAlteration() as alteration):
                self._quotas = self._quotas_before[id(alteration)]
            case _:
                raise ScenarioError(moment.path, f"has no effect in a fleet simulation; expected one of {_STEPS}")
        self._end_segment(at_us)
        return True

    def _end_segment(self, at_us: int) -> None:
        faults = tuple(window for _, window in self._faults.values())
        leaders, coordinators = np.split(self._leaders.copy(), [self._partitions])
        replicated_us = self._replicated_us[: self._partitions].copy()
        segment = Segment(at_us, self._up.copy(), leaders, coordinators, replicated_us, faults, self._quotas)
        if self._segments and self._segments[-1].from_us == at_us:
            self._segments.pop()
        self._segments.append(segment)

    def _change_broker(self, at_us: int, kind: str, broker: int) -> None:
        self._up[broker] = kind == "start"
        if kind == "kill":
            self._elections.append((at_us + self._election_us, broker))
            is_replica = np.array([broker in replicas and len(replicas) > 1 for replicas in self._replicas])
            self._replicated_us[is_replica] = at_us + self._election_us
        elif kind == "stop":
            self._elect(broker)
        else:
            if any(killed == broker for _, killed in self._elections):
                self._replicated_us[:] = np.minimum(self._replicated_us, at_us)
            self._elections = [(at, killed) for at, killed in self._elections if killed != broker]
            for partition, replicas in enumerate(self._replicas):
                if self._leaders[partition] == NO_LEADER and broker in replicas:
                    self._leaders[partition] = broker

    def _elect_until(self, at_us: int) -> None:
        while self._elections and self._elections[0][0] <= at_us:
            when_us, killed = self._elections.pop(0)
            self._elect(killed)
            self._end_segment(when_us)

    def _elect(self, lost: int) -> None:
        for partition, replicas in enumerate(self._replicas):
            if self._leaders[partition] == lost:
                running = [broker for broker in replicas if self._up[broker]]
                self._leaders[partition] = running[0] if running else NO_LEADER

    def _check_topic(self, path: str, topic: str) -> None:
        if topic != self._topic and self._topic is not None:
            raise ScenarioError(path, f"expected the topic of the fleet, {self._topic}, got {topic}")

    def _check_partition(self, path: str, partition: int) -> None:
        if partition >= self._partitions:
            raise ScenarioError(path, f"expected a partition up to {self._partitions - 1}, got {partition}")

    def _fault(self, rule: Rule, path: str) -> FaultWindow:
        for name in _UNUSED:
            if getattr(rule, name) is not None:
                raise ScenarioError(f"{path}.{name}", f"has no effect in a fleet simulation; expected {_CONDITIONS}")
        kinds, outcome, delay_us = _effect(rule, path)
        partitions = np.ones(self._partitions, dtype=np.bool_)
        if rule.topic is not None:
            self._check_topic(f"{path}.topic", rule.topic)
            kinds &= _WITH_TOPIC
        if rule.partition is not None:
            chosen = [rule.partition] if isinstance(rule.partition, int) else rule.partition
            for partition in chosen:
                self._check_partition(f"{path}.partition", partition)
            kinds &= _WITH_PARTITION
            partitions = np.isin(np.arange(self._partitions), chosen)
        named = [rule.api] if isinstance(rule.api, str) else (rule.api or [])
        if named:
            sent = {APIS[name] for name in named if name in APIS}
            if not sent:
                raise ScenarioError(f"{path}.api", f"expected {', '.join(APIS)}, got {', '.join(named)}")
            kinds &= sent
            if not kinds:
                raise ScenarioError(f"{path}.api", f"the action has no effect on {', '.join(named)}")
        nodes = [rule.broker] if isinstance(rule.broker, int) else (rule.broker or [])
        brokers = np.full(self._brokers, not nodes, dtype=np.bool_)
        brokers[[node - self._first_node for node in nodes]] = True
        probability = 1.0 if rule.probability is None else rule.probability
        schedule = rule.times, rule.on, rule.schedule
        return FaultWindow(
            kinds, brokers, partitions, outcome, probability, schedule if any(schedule) else None, delay_us
        )


def _quotas(before: Mapping[str | None, float], action: QuotaAlteration, path: str) -> dict[str | None, float]:
    if set(action.entity) != {CLIENT_ID} or set(action.values or {}) - {"producer_byte_rate"}:
        raise ScenarioError(path, "has no effect in a fleet simulation; expected client_id and producer_byte_rate")
    name = action.entity[CLIENT_ID]
    rest = {client: rate for client, rate in before.items() if client != name}
    return rest if action.values is None else {**rest, name: action.values["producer_byte_rate"]}


def _replicas(scenario: Scenario, first_node: int) -> list[list[int]]:
    if not scenario.topics:
        return spread_replicas(scenario.brokers)
    topic = scenario.topics[0]
    if topic.assignments is not UNSET:
        return [[node - first_node for node in replicas] for replicas in topic.assignments]
    count = scenario.brokers if topic.partitions is UNSET else topic.partitions
    size = scenario.brokers if topic.replicas is UNSET else topic.replicas
    return [[(partition + step) % scenario.brokers for step in range(size)] for partition in range(count)]


def spread_replicas(brokers: int) -> list[list[int]]:
    """Return the brokers of each partition, leader first, so that a lost broker's leaders move to all others evenly."""
    others = range(1, brokers)
    return [
        [leader, *((leader + (step + shift) % (brokers - 1) + 1) % brokers for step in range(brokers - 1))]
        for shift in range(max(len(others), 1))
        for leader in range(brokers)
    ]


_Effect = tuple[frozenset[int], Effect, tuple[int, int]]
_WITH_PARTITION = frozenset((PRODUCE, FETCH))
_WITH_TOPIC = _WITH_PARTITION | {METADATA}
_ALL = frozenset(range(REQUESTS))
_NO_DELAY = (0, 0)


def _effect(rule: Rule, path: str) -> _Effect:
    """Return the requests that a rule hits, and its effect, which is the same before and after they are handled."""
    action = rule.the_action
    match action:
        case Error(error_code=code) if code in _STALE_METADATA:
            return _WITH_PARTITION, Effect.NOT_LEADER, _NO_DELAY
        case Error(error_code=ErrorCode.KAFKA_STORAGE_ERROR):
            return _WITH_PARTITION, Effect.RETRIABLE, _NO_DELAY
        case Error(error_code=ErrorCode.NOT_COORDINATOR):
            return frozenset((HEARTBEAT,)), Effect.NOT_LEADER, _NO_DELAY
        case Error(error_code=code) if code in _RETRIABLE:
            return frozenset((PRODUCE,)), Effect.RETRIABLE, _NO_DELAY
        case DiskFull():
            return frozenset((PRODUCE,)), Effect.RETRIABLE, _NO_DELAY
        case Error(error_code=ErrorCode.LEADER_NOT_AVAILABLE):
            return frozenset((METADATA,)), Effect.NO_LEADER_KNOWN, _NO_DELAY
        case Error():
            codes = [code.name for code in (*_STALE_METADATA, *_RETRIABLE, *_OTHERS)]
            raise ScenarioError(f"{path}.action.code", f"expected one of {', '.join(codes)}, got {action.code}")
        case Close():
            return _ALL, Effect.CLOSED, _NO_DELAY
        case BlackHole():
            return _ALL, Effect.SILENT, _NO_DELAY
        case RefuseConnections():
            return frozenset((CONNECT,)), Effect.REFUSED, _NO_DELAY
        case SilentConnections():
            return frozenset((CONNECT,)), Effect.SILENT, _NO_DELAY
        case Delay(ms=ms) if ms is not None:
            delay_us = int(parse_ms(ms, f"{path}.action.ms") * US_PER_MS)
            return _ALL, Effect.ANSWERED, (delay_us, delay_us)
        case Delay(min=least, max=most) if least is not None and most is not None:
            bounds_ms = parse_ms(least, f"{path}.action.min"), parse_ms(most, f"{path}.action.max")
            return _ALL, Effect.ANSWERED, (int(bounds_ms[0] * US_PER_MS), int(bounds_ms[1] * US_PER_MS))
        case _:
            raise ScenarioError(
                f"{path}.action",
                "has no effect in a fleet simulation; expected error, close, black-hole, refuse-connections,"
                " silent-connections, disk-full, or delay with ms, or min and max",
            )
