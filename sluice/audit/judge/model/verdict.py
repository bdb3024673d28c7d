"""Verdicts, findings and their numbers: the types of report.json."""

from enum import StrEnum

import msgspec

from .attempts import Kind
from .observation import SubjectInfo


class State(StrEnum):
    """The result of comparing a client with a statement."""

    PASS = "pass"  # noqa: S105  (not a password)
    DEVIATES = "deviates"
    NOT_OBSERVABLE = "not-observable"
    INCONCLUSIVE = "inconclusive"


class Sort(StrEnum):
    """The kind of a deviation: which documentation the client contradicts."""

    VIOLATES_ITS_DOCUMENTATION = "violates its own documentation"
    DIFFERS_FROM_KIP = "differs from the KIP"
    PREDATES_KIP = "predates the KIP"


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """The backoff that explains the waits best.

    model: constant, linear or exponential
    base_ms: first wait
    multiplier: factor between waits if exponential; step in ms if linear; else 1
    cap_ms: longest wait; null: no cap was reached
    jitter: half the spread around the model's value, relative to it; Kafka's is 0.2
    residual: nine of ten waits differ from the model's value by at most this share of it
    confidence: share of resamples that the same model explains best, 0 to 1
    waits: number of waits
    """

    model: str
    base_ms: float
    multiplier: float
    cap_ms: float | None
    jitter: float
    residual: float = 0.0
    confidence: float
    waits: int


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One sequence of attempts for a plot, with the allowed waits.

    kind: kind of operation
    key: identity of the operation
    repetition: number of the run
    at_ms: time of each attempt since the first
    waited_ms: wait before each attempt but the first
    low_ms: shortest allowed wait before each attempt but the first; empty without a rule
    high_ms: longest allowed wait
    outcomes: outcome of each attempt
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
    """The verdict on one statement for one client.

    statement: such as KIP-580/1
    state: the result
    sort: kind of a deviation
    why: one line: the size of a deviation, why the statement is not observable, or the missing evidence
    path: the kind of failure, such as "accepted, then closed"
    probe: the probe whose runs decided
    where: run and attempts that show a deviation
    measured: measured numbers by name
    expected: expected values by the same names, as text such as "80 to 120 ms"
    fit: fit of the waits, if any
    series: evaluated sequences
    runs: number of evaluated runs
    runs_needed: further runs that would decide an inconclusive verdict; null: none would
    missing: settings whose values would decide an inconclusive verdict
    """

    statement: str
    state: State
    sort: Sort | None = None
    why: str
    path: str = ""
    probe: str = ""
    where: str = ""
    measured: dict[str, float | str] = {}
    expected: dict[str, str] = {}
    fit: Fit | None = None
    series: list[Series] = []
    runs: int = 0
    runs_needed: int | None = None
    missing: list[str] = []


class FindingKind(StrEnum):
    """A finding besides the statements."""

    STORM = "storm"  # hundreds of connections or requests in seconds
    STALL = "stall"  # nothing was sent after the fault ended
    DUPLICATE = "duplicate"  # an acknowledged batch was sent again
    LOST = "lost"  # an acknowledged record is not in the log
    WRAPPED = "wrapped"  # waits fell back after many attempts, as when a counter overflows
    FAILED = "failed"  # it crashed, or all its requests were wrong


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Another result that matters to operators of the client.

    kind: type of finding
    probe: probe in which it was found
    why: one line
    measured: numbers behind it
    series: evaluated sequences
    """

    kind: FindingKind
    probe: str
    why: str
    measured: dict[str, float | str] = {}
    series: list[Series] = []


class MeasuredBackoff(msgspec.Struct, frozen=True, kw_only=True):
    """The backoff that a client was seen to use, independent of its settings.

    kind: kind of operation
    probe: the probe that shows it
    fit: the model of its waits
    reset: whether a success restarts it; null: not seen
    is_shared: whether all brokers, or all partitions, share one counter; null: not seen
    """

    kind: Kind
    probe: str
    fit: Fit
    reset: bool | None = None
    is_shared: bool | None = None


class SubjectResult(msgspec.Struct, frozen=True, kw_only=True):
    """All results for one client.

    subject: the client; role and settings are those of the first probe
    verdicts: one per statement that any probe covers
    backoffs: measured backoffs, one per kind of operation
    findings: results besides the statements
    recovery_ms: by probe, median time from the end of the fault to the next success
    probes: number of runs by probe
    problems: unusable runs, with the reason
    not_applicable: probes that need brokers of sluice, with the reason, in an audit of a real cluster
    seconds: duration of the audit
    virtual: whether it used virtual time
    """

    subject: SubjectInfo
    verdicts: list[Verdict]
    backoffs: list[MeasuredBackoff] = []
    findings: list[Finding] = []
    recovery_ms: dict[str, float] = {}
    probes: dict[str, int] = {}
    problems: list[str] = []
    not_applicable: dict[str, str] = {}
    seconds: float = 0.0
    virtual: bool = False


class AuditResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of `sluice audit run`: the content of report.json.

    sluice: version of sluice
    began: start time, ISO 8601 in UTC
    machine: processors, Python and system, because they affect times
    upstream: bootstrap servers of the real cluster; empty: brokers of sluice
    subjects: one per client
    """

    sluice: str
    began: str
    machine: str
    upstream: str = ""
    subjects: list[SubjectResult]
