"""What the judge says, with the numbers behind it: the types of report.json."""

from enum import StrEnum

import msgspec

from .attempts import Kind
from .observation import SubjectInfo


class State(StrEnum):
    """How a client stands to a statement."""

    PASS = "pass"  # noqa: S105  (no password)
    DEVIATES = "deviates"
    NOT_OBSERVABLE = "not-observable"
    INCONCLUSIVE = "inconclusive"


class Sort(StrEnum):
    """What kind of departure it is: whose words the client goes against."""

    VIOLATES_ITS_DOCUMENTATION = "violates its own documentation"
    DIFFERS_FROM_KIP = "differs from the KIP"
    PREDATES_KIP = "predates the KIP"


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The backoff that explains the waits best.

    model: constant, linear or exponential
    base_ms: the first wait
    multiplier: from wait to wait, of an exponential one; the step in ms, of a linear one; else 1
    cap_ms: the longest wait; null: none was reached
    jitter: half the spread around the rule's value, as a share of it: 0.2 of Kafka's
    confidence: share of resampled waits that are explained best by the same model, 0 to 1
    waits: how many were looked at
    """

    model: str
    base_ms: float
    multiplier: float
    cap_ms: float | None
    jitter: float
    confidence: float
    waits: int


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One sequence of attempts for a plot, and what was allowed.

    kind: of what
    key: of which
    repetition: of which run
    at_ms: when each attempt came, from the first one
    waited_ms: before each attempt but the first
    low_ms: the least that each of these waits may be; empty where there is no rule
    high_ms: the most
    outcomes: of each attempt
    """

    kind: Kind
    key: str
    repetition: int
    at_ms: list[float]
    waited_ms: list[float]
    low_ms: list[float] = []
    high_ms: list[float] = []
    outcomes: list[str] = []


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One statement, one client.

    statement: such as KIP-580/1
    state: how the client stands to it
    sort: of a deviation, what kind
    why: one line: how and by how much it deviates, why it cannot be seen, or what is missing
    path: which failure it was seen under, such as "accepted, then closed"
    measured: the numbers that decide, by name
    expected: what they should be, by the same names, in words such as "80 to 120 ms"
    fit: of the waits, where there is one
    series: what was looked at
    runs: how many runs were looked at
    runs_needed: how many more would decide, of an inconclusive one; null: no number would
    """

    statement: str
    state: State
    sort: Sort | None = None
    why: str
    path: str = ""
    measured: dict[str, float | str] = {}
    expected: dict[str, str] = {}
    fit: Fit | None = None
    series: list[Series] = []
    runs: int = 0
    runs_needed: int | None = None


class FindingKind(StrEnum):
    """What is told of a client apart from the statements."""

    STORM = "storm"  # hundreds of connections or requests in seconds
    STALL = "stall"  # nothing was sent after the fault ended
    DUPLICATE = "duplicate"  # an acknowledged batch was sent again
    LOST = "lost"  # an acknowledged record is not in the log
    WRAPPED = "wrapped"  # waits fell back after many attempts: a counter overflowed


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something else that the operator of such a client wants to know.

    kind: what
    probe: in which it was seen
    why: one line
    measured: the numbers behind it
    series: what was looked at
    """

    kind: FindingKind
    probe: str
    why: str
    measured: dict[str, float | str] = {}
    series: list[Series] = []


class SubjectResult(msgspec.Struct, frozen=True, kw_only=True):
    """All about one client.

    subject: who; its role and settings are those of the first probe
    verdicts: one for each statement that any probe is about
    findings: what else was seen
    recovery_ms: by probe, from the end of the fault to the next success, median of the runs
    probes: by probe, how many runs there were
    problems: runs that were none, and why
    seconds: how long it took
    virtual: whether it was in virtual time
    """

    subject: SubjectInfo
    verdicts: list[Verdict]
    findings: list[Finding] = []
    recovery_ms: dict[str, float] = {}
    probes: dict[str, int] = {}
    problems: list[str] = []
    seconds: float = 0.0
    virtual: bool = False


class AuditResult(msgspec.Struct, frozen=True, kw_only=True):
    """What `sluice audit run` found: the content of report.json.

    sluice: version that measured
    began: when, as ISO 8601 in UTC
    machine: processors, Python and system, as far as they matter for times
    subjects: one for each client
    """

    sluice: str
    began: str
    machine: str
    subjects: list[SubjectResult]
