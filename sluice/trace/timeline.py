"""Bars and marks of the events of one cluster, in order of `seq`."""

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from sluice import journal_events
from sluice.broker.journal.format_event import what

from . import described
from .lanes import Lanes, LaneTable
from .model import NONE, Outcome, Tone
from .states import States

_INTERNAL = "__"  # prefix of internal topics; their partitions have no lanes
_US_PER_MS = 1_000
_NS_PER_US = 1_000
_COMMITS = frozenset({"OffsetCommit", "TxnOffsetCommit"})
_BY_LEADERS = frozenset({"Produce", "ListOffsets"})  # answered without an error only by leaders
_RUNNING = Outcome("running", "state")
_LEADER = Outcome("leader", "state")
_NO_LEADER = Outcome("no leader", "lost")
_ACTIVE = Outcome("active", "state")
_STATE_TONES: dict[str, Tone] = {
    "PreparingRebalance": "throttled",
    "CompletingRebalance": "throttled",
    "Assigning": "throttled",
    "Reconciling": "throttled",
    "Dead": "neutral",
    "Empty": "neutral",
    "PrepareAbort": "error",
    "CompleteAbort": "neutral",
    "CompleteCommit": "neutral",
    "PrepareEpochFence": "error",
    "stopped": "lost",
    "isolated": "lost",
    "fenced": "error",
}


class Bar(NamedTuple):
    """A bar; `cluster` is the number of its cluster, the other fields are columns of `model.Bars`."""

    start_ns: int
    end_ns: int
    cluster: int
    lane: int
    outcome: Outcome
    text: str
    seq: int
    parked: int = 0
    throttle: int = 0
    detail: tuple[tuple[str, str], ...] = ()
    correlation_id: int = NONE
    request_bytes: int = NONE
    response_bytes: int = NONE


class Mark(NamedTuple):
    at_ns: int
    cluster: int
    lane: int
    tone: Tone
    glyph: str
    text: str
    seq: int


class _Span(NamedTuple):
    """The beginning of a bar."""

    start_ns: int
    outcome: Outcome
    text: str
    seq: int


class Timeline:
    """Bars, marks and state changes so far; new lanes are added to the table of the trace."""

    def __init__(
        self, table: LaneTable, cluster: int, label: str, start_ns: int, refused: Collection[int] = ()
    ) -> None:
        self.bars: list[Bar] = []
        self.marks: list[Mark] = []
        self.states = States(label)
        self.end_ns = start_ns
        self._table = table
        self._lanes = Lanes(table, label, refused)
        self._cluster = cluster
        self._start_ns = start_ns
        self._open: dict[int, _Span] = {}  # by lane
        self._leaders: dict[int, tuple[int, str]] = {}  # lane -> node id of the leader, partition
        self._stopped: set[int] = set()  # leaders
        self._hits: dict[str, int] = {}  # by rule
        self._rules: dict[str, str] = {}
        self._most_hits: dict[str, int | None] = {}
        self._related: set[tuple[int, str, int]] = set()
        self._of_types: dict[type[journal_events.AnyEvent], Callable[[Any], None]] = {
            journal_events.Request: self._request,
            journal_events.ConnectionOpened: self._connection_opened,
            journal_events.ConnectionRefused: self._connection_refused,
            journal_events.ConnectionClosed: self._connection_closed,
            journal_events.Throttle: self._throttle,
            journal_events.ShadowThrottle: self._shadow_throttle,
            journal_events.Fault: self._fault,
            journal_events.RuleChange: self._rule_change,
            journal_events.QuotaChange: self._quota_change,
            journal_events.GroupState: self._group_state,
            journal_events.TransactionState: self._transaction_state,
            journal_events.AcquisitionTimeout: self._acquisition_timeout,
            journal_events.LeaderChange: self._leader_change,
            journal_events.BrokerState: self._broker_state,
            journal_events.ScenarioStep: self._scenario_step,
            journal_events.Gap: self._gap,
        }

    def add(self, event: journal_events.AnyEvent) -> None:
        self.end_ns = max(self.end_ns, event.at_ns)
        self._of_types[type(event)](event)

    def end(self, at_ns: int) -> None:
        """End all open spans."""
        for lane in [*self._open]:
            self._switch(lane, at_ns, None)

    # -- clients -------------------------------------------------------------------------------------------------------

    def _request(self, event: journal_events.Request) -> None:
        lane = self._lanes.connection(event)
        ended_ns = event.written_ns or event.answered_ns or event.at_ns
        self.end_ns = max(self.end_ns, ended_ns, event.received_ns)
        parked = (event.at_ns - event.started_ns) // _NS_PER_US
        bar = Bar(
            event.received_ns,
            ended_ns,
            self._cluster,
            lane,
            described.outcome_of(event),
            described.text_of(event),
            event.seq,
            parked if parked >= _US_PER_MS else 0,
            event.throttle_time_ms * _US_PER_MS,
            tuple(described.detail_of(event)),
            event.correlation_id,
            event.request_bytes,
            event.response_bytes,
        )
        self.bars.append(bar)
        self._relate(event, lane)
        self.states.request(event)
        if event.api in _COMMITS and not described.has_failed(event):
            where = ", ".join(map(_offset_text, event.partitions))
            self._mark(event, self._lanes.group(event.group_id), "ok", "✓", f"{event.client_id} committed {where}")

    def _relate(self, event: journal_events.Request, lane: int) -> None:
        """Relate a connection to what its request names, and find the leaders of partitions."""
        if event.group_id:
            self._table.relate(lane, self._lanes.group(event.group_id))
        if event.transactional_id:
            self._table.relate(lane, self._lanes.transaction(event.transactional_id))
        for partition in event.partitions:
            topic, index = partition.topic, partition.partition
            if (lane, topic, index) in self._related or index == journal_events.NO_ID or topic.startswith(_INTERNAL):
                continue
            self._related.add((lane, topic, index))
            of_partition = self._lanes.partition(topic, index)
            self._table.relate(lane, of_partition)
            if event.api in _BY_LEADERS and not described.has_failed(event) and of_partition not in self._open:
                self._set_leader(of_partition, event.received_ns, event.broker, f"{topic}-{index}")

    def _connection_opened(self, event: journal_events.ConnectionOpened) -> None:
        self._mark(event, self._lanes.connection(event), "neutral", "▸", what(event))

    def _connection_refused(self, event: journal_events.ConnectionRefused) -> None:
        self._mark(event, self._lanes.connection(event), "error", "⊘", what(event))

    def _connection_closed(self, event: journal_events.ConnectionClosed) -> None:
        tone: Tone = "neutral" if event.by_client else "lost"
        self._mark(event, self._lanes.connection(event), tone, "◂", what(event))

    def _throttle(self, event: journal_events.Throttle) -> None:
        self._mark(event, self._lanes.connection(event), "throttled", "◷", what(event))
        self.states.throttle(event)

    def _shadow_throttle(self, event: journal_events.ShadowThrottle) -> None:
        self._mark(event, self._lanes.connection(event), "neutral", "◷", what(event))

    # -- rules and quotas ----------------------------------------------------------------------------------------------

    def _fault(self, event: journal_events.Fault) -> None:
        rule_id = event.rule_id
        lane = (
            self._lanes.broker(event.broker)
            if event.connection == journal_events.NO_ID
            else self._lanes.connection(event)
        )
        self._mark(event, lane, "fault", "✗", what(event))
        self._mark(event, self._lanes.rule(rule_id), "fault", "✗", f"{event.client_id} {what(event)}".strip())
        self._hits[rule_id] = self._hits.get(rule_id, 0) + 1
        self._set_rule(event.at_ns, rule_id)
        if self._hits[rule_id] == self._most_hits.get(rule_id):
            self._switch(self._lanes.rule(rule_id), event.at_ns, None)

    def _rule_change(self, event: journal_events.RuleChange) -> None:
        lane, rule_id = self._lanes.rule(event.rule_id), event.rule_id
        if event.change == "added":
            text, most_hits = described.described_rule(event.rule)
            self._rules[rule_id], self._most_hits[rule_id], self._hits[rule_id] = text, most_hits, 0
            self._table.lanes[lane].detail = text
            self._mark(event, lane, "neutral", "+", f"rule {rule_id} added: {text}")
            self._switch(lane, event.at_ns, _ACTIVE, text, event.seq)
            self._set_rule(event.at_ns, rule_id)
        else:
            self._mark(event, lane, "neutral", "−", f"rule {rule_id} {event.change}")
            self._switch(lane, event.at_ns, None)
            self.states.set(event.at_ns, "rules", rule_id, None)

    def _set_rule(self, at_ns: int, rule_id: str) -> None:
        hits = described.counted(self._hits.get(rule_id, 0), "hit")
        self.states.set(at_ns, "rules", rule_id, "; ".join(filter(None, (self._rules.get(rule_id), hits))))

    def _quota_change(self, event: journal_events.QuotaChange) -> None:
        self._mark(event, self._lanes.quotas(), "neutral", "Q", what(event))
        self.states.quota_change(event)

    # -- groups, transactions, partitions, brokers ---------------------------------------------------------------------

    def _group_state(self, event: journal_events.GroupState) -> None:
        self._switch(
            self._lanes.group(event.group_id), event.at_ns, _state(event.after), described.group_text(event), event.seq
        )
        self.states.group_state(event)

    def _transaction_state(self, event: journal_events.TransactionState) -> None:
        lane = self._lanes.transaction(event.transactional_id)
        self._switch(lane, event.at_ns, _state(event.after), described.transaction_text(event), event.seq)
        self.states.transaction_state(event)

    def _acquisition_timeout(self, event: journal_events.AcquisitionTimeout) -> None:
        self._mark(event, self._lanes.group(event.group_id), "error", "!", what(event))

    def _leader_change(self, event: journal_events.LeaderChange) -> None:
        if event.topic.startswith(_INTERNAL):
            return
        lane = self._lanes.partition(event.topic, event.partition)
        name = f"{event.topic}-{event.partition}"
        if lane not in self._open and event.before != journal_events.NO_ID:
            self._set_leader(lane, self._start_ns, event.before, name)
        self._leaders[lane] = event.broker, name
        outcome = _NO_LEADER if event.broker == journal_events.NO_ID else _LEADER
        self._switch(lane, event.at_ns, outcome, described.leader_text(event), event.seq)
        self._mark(event, lane, "lost" if event.lost_records else "state", "★", what(event))
        self.states.leader_change(event)

    def _broker_state(self, event: journal_events.BrokerState) -> None:
        lane = self._lanes.broker(event.broker)
        if lane not in self._open and event.state != "running":
            self._switch(lane, self._start_ns, _RUNNING, _RUNNING.name)
        self._switch(lane, event.at_ns, _state(event.state), event.state, event.seq)
        self.states.broker_state(event)
        for partition, (leader, name) in self._leaders.items():
            if leader == event.broker and event.state == "stopped":
                without = f"no leader: broker {leader} stopped"
                self._switch(partition, event.at_ns, _NO_LEADER, without)
                self.states.set(event.at_ns, "leaders", name, without)
                self._stopped.add(leader)
            elif leader == event.broker and event.state == "running" and leader in self._stopped:
                self._set_leader(partition, event.at_ns, leader, name)

    def _set_leader(self, lane: int, at_ns: int, leader: int, name: str) -> None:
        self._leaders[lane] = leader, name
        self._switch(lane, at_ns, _LEADER, f"broker {leader}")
        self.states.set(at_ns, "leaders", name, f"broker {leader}")

    def _scenario_step(self, event: journal_events.ScenarioStep) -> None:
        tone: Tone = "error" if event.problem else "neutral"
        self._mark(event, self._lanes.scenario(event.scenario), tone, "§", what(event))

    def _gap(self, event: journal_events.Gap) -> None:
        self._mark(event, self._lanes.journal(), "lost", "…", what(event))

    # -- details -------------------------------------------------------------------------------------------------------

    def _mark(self, event: journal_events.AnyEvent, lane: int, tone: Tone, glyph: str, text: str) -> None:
        self.marks.append(Mark(event.at_ns, self._cluster, lane, tone, glyph, text, event.seq))

    def _switch(self, lane: int, at_ns: int, outcome: Outcome | None, text: str = "", seq: int = NONE) -> None:
        """End the open span of a lane, and begin another one, unless `outcome` is None."""
        span = self._open.pop(lane, None)
        if span is not None:
            self.bars.append(Bar(span.start_ns, at_ns, self._cluster, lane, span.outcome, span.text, span.seq))
        if outcome is not None:
            self._open[lane] = _Span(at_ns, outcome, text, seq)


def _offset_text(partition: journal_events.TopicPartition) -> str:
    name = described.partition_name(partition)
    return name if partition.offset == journal_events.NO_ID else f"{name} at {partition.offset}"


def _state(name: str) -> Outcome:
    return Outcome(name, _STATE_TONES.get(name, "state"))
