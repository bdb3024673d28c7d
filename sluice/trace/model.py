"""The model of a trace: everything that its page shows, as JSON.

All knowledge of Kafka is in Python; the page is generic. It draws lanes from top to bottom in the given order, on one
time axis, and has these parts:

- `lanes`: rows, grouped by consecutive `group`; in a group, by consecutive `owner` (the client of a connection, the
  topic of a partition). `bars` and `marks` refer to lanes by index. `relates` are indexes of other lanes that concern
  the same thing (a connection and its broker, a group and the connections of its members), to highlight or filter;
- `bars`: spans of lanes, in columns of equal length, ordered by start: requests in lanes of connections, leaders in
  lanes of partitions, states in lanes of groups, transactions and brokers, and the life of rules;
- `marks`: instants of lanes, in columns, ordered by time: a connection opened, a fault hit, a commit;
- `links`: pairs of bars, indexes: a request and the next attempt of the same;
- `state`: changes of what is known at an instant, ordered by time. Each sets a value of a section and key; null removes
  it. The state at the cursor is the last value of each section and key up to it;
- `findings`: what a reader should look at, the most probable cause of a failed test first, with the bars and marks that
  show it (indexes);
- `phases`, `logs` and `failure` of the test: see their classes. A log line is [time, level, logger, text].

Times are integers, microseconds since `start_ns`; end times are never before start times. Texts are plain text, never
HTML. Numbers without a value are -1. `outcome`, `text` and `detail` of a bar are indexes of `outcomes`, `texts` and
`details`; a mark's `text` is an index of `texts`, too, and its `glyph` one character. The columns of bars:

- `lane`, `start`, `end`, `outcome`, `text`, `detail`: as above; `detail` -1 is none;
- `seq`: of the journal event, -1 for spans that several events make;
- `parked`: microseconds that the broker waited before it answered (a long poll, acks=all, a rebalance);
- `throttle`: microseconds of throttle time, from the response on; a page may draw it behind the bar;
- `attempt`: number of the chain of attempts, or -1: the bars of one chain are joined by `links`;
- `correlation_id`, `request_bytes`, `response_bytes`: of a request, else -1.

A trace that is compared with another has it in `compare`: `other` is a trace with findings and all; `pairs` are
bars of this and of the other trace that are the same request (client id, API, attempt key, ordinal); `differences` are
what is not the same, in order of time, the first difference first. Of a difference, `bar` and `other_bar` are -1 if the
request is only in the other or in this trace.
"""

from typing import Literal

import msgspec

VERSION = 1

Tone = Literal["ok", "error", "throttled", "fault", "lost", "neutral", "state"]
LaneGroup = Literal["test", "rule", "client", "group", "transaction", "partition", "broker"]
Severity = Literal["error", "warning", "info"]
Result = Literal["failed", "passed", ""]
Section = Literal["brokers", "leaders", "groups", "members", "committed", "offsets", "transactions", "quotas", "rules"]
NONE = -1


class Lane(msgspec.Struct):
    """A row of the time axis.

    id: unique in the trace and stable between runs as far as possible, such as connection-5, partition-orders-0
    group: kind of lane
    owner: client id of a connection, topic of a partition, else ""
    label: short name
    detail: one line more: address, software and version, listener
    relates: indexes of related lanes
    """

    id: str
    group: LaneGroup
    owner: str
    label: str
    detail: str = ""
    relates: list[int] = []


class Outcome(msgspec.Struct, frozen=True):
    """How a request ended, or the state of a span; `name` is a legend's text, `tone` selects the colour."""

    name: str
    tone: Tone


class Bars(msgspec.Struct):
    lane: list[int] = []
    start: list[int] = []
    end: list[int] = []
    outcome: list[int] = []
    text: list[int] = []
    seq: list[int] = []
    parked: list[int] = []
    throttle: list[int] = []
    attempt: list[int] = []
    detail: list[int] = []
    correlation_id: list[int] = []
    request_bytes: list[int] = []
    response_bytes: list[int] = []


class Marks(msgspec.Struct):
    lane: list[int] = []
    at: list[int] = []
    tone: list[Tone] = []
    glyph: list[str] = []
    text: list[int] = []
    seq: list[int] = []


class Finding(msgspec.Struct):
    """What a reader should look at.

    id: kind of finding, such as rule-never-fired
    severity: error (explains a failure), warning, info
    title: one line
    text: what was observed, with numbers, and what to do; may have several lines
    at: time, to move the cursor to
    bars: indexes of the bars that show it
    marks: the same of marks
    """

    id: str
    severity: Severity
    title: str
    text: str
    at: int
    bars: list[int] = []
    marks: list[int] = []


class Phase(msgspec.Struct):
    """A phase of the test: setup, call or teardown; `result` is passed, failed, skipped or ""."""

    name: str
    start: int
    end: int
    result: str = ""


class Failure(msgspec.Struct):
    """The failed assertion: its text, and the place in the test."""

    text: str
    file: str = ""
    line: int = NONE
    at: int = NONE


class Difference(msgspec.Struct):
    """A difference of two traces, at a time of this one."""

    at: int
    text: str
    bar: int = NONE
    other_bar: int = NONE


class Comparison(msgspec.Struct):
    other: "Trace"
    pairs: list[tuple[int, int]] = []
    differences: list[Difference] = []


class Trace(msgspec.Struct):
    """A trace.

    version: VERSION
    title: name of the test, or of the journal
    subtitle: one line more, such as the versions involved
    result: failed or passed; "" if it is no test
    start_ns: time of the first event, in nanoseconds since the epoch
    end: time of the last event
    """

    version: int
    title: str
    subtitle: str
    result: Result
    start_ns: int
    end: int
    lanes: list[Lane]
    bars: Bars
    outcomes: list[Outcome]
    texts: list[str]
    details: list[list[tuple[str, str]]]
    marks: Marks
    links: list[tuple[int, int]]
    state: list[tuple[int, Section, str, str | None]]
    findings: list[Finding] = []
    phases: list[Phase] = []
    logs: list[tuple[int, str, str, str]] = []
    failure: Failure | None = None
    compare: Comparison | None = None
