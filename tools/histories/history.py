"""The history of one run: each operation of each client, with its invocation, its completion and its outcome.

As in Jepsen, an outcome is OK, FAIL (certainly without effect) or INFO (unknown: the effect may come at any later time,
or never). A process is one instance of a client: a client that is replaced after an error continues as a new process.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from math import inf


class Outcome(Enum):
    """The outcome of an operation."""

    OK = "ok"
    FAIL = "fail"
    INFO = "info"


class Guarantee(Enum):
    """What a producer guarantees about its records besides their delivery."""

    AT_LEAST_ONCE = "at least once"
    ORDERED = "at least once, in order"  # one request in flight
    EXACTLY_ONCE = "exactly once, in order"


@dataclass(kw_only=True, slots=True)
class Operation:
    """An operation of one process."""

    process: str
    invoked_ms: float
    completed_ms: float = inf
    outcome: Outcome = Outcome.INFO

    def complete(self, at_ms: float, outcome: Outcome = Outcome.OK) -> None:
        self.completed_ms = at_ms
        self.outcome = outcome

    @property
    def is_ok(self) -> bool:
        return self.outcome is Outcome.OK

    def precedes(self, other: "Operation") -> bool:
        """Return whether this operation completed before the other was invoked."""
        return self.completed_ms < other.invoked_ms


@dataclass(kw_only=True, slots=True)
class Send(Operation):
    """A record that is sent once; `value` is unique in the history, and rises in the order of sends."""

    value: int
    key: str
    partition: int
    guarantee: Guarantee
    offset: int = -1  # -1: unknown
    transaction: int | None = None


@dataclass(kw_only=True, slots=True)
class Init(Operation):
    """An `init_transactions`, which fences earlier processes with the same transactional id."""

    transactional_id: str


@dataclass(kw_only=True, slots=True)
class End(Operation):
    """The end of a transaction."""

    transaction: int
    commits: bool


@dataclass(kw_only=True, slots=True)
class Poll(Operation):
    """Received records of one partition.

    session: the assignment of the partition within which offsets are contiguous; None if it changed during the poll
    first: the offset that the session starts at; None if it is a committed one
    is_final: whether it returns the whole log, after the last failure has ended
    """

    partition: int
    records: list[tuple[int, int]]  # offsets and values
    committed_only: bool
    session: int | None
    first: int | None = None
    group: str | None = None
    is_final: bool = False


@dataclass(kw_only=True, slots=True)
class EndOffset(Operation):
    """A request for the end offset that a consumer reads up to: the high watermark or the last stable offset."""

    partition: int
    committed_only: bool
    offset: int = -1


@dataclass(kw_only=True, slots=True)
class Commit(Operation):
    """A commit of a group's offset."""

    group: str
    partition: int
    offset: int


@dataclass(kw_only=True, slots=True)
class Committed(Operation):
    """A request for a group's committed offset; None if there is none."""

    group: str
    partition: int
    offset: int | None = None


AnyOperation = Send | Init | End | Poll | EndOffset | Commit | Committed


@dataclass
class History:
    """The operations in the order of their invocations, and the failures."""

    operations: list[AnyOperation] = field(default_factory=list)
    failures: list[tuple[float, str]] = field(default_factory=list)
    # After the last failure: the committed values of the copies, and the offsets up to which the topic was copied.
    copies: dict[int, list[int]] = field(default_factory=dict)
    copied_up_to: dict[int, int] = field(default_factory=dict)

    @property
    def sends(self) -> dict[int, Send]:
        """The sends by value."""
        return {each.value: each for each in self.operations if isinstance(each, Send)}

    @property
    def ends(self) -> dict[int, End]:
        """The last attempt to end each transaction."""
        return {each.transaction: each for each in self.operations if isinstance(each, End)}

    def final(self, *, committed_only: bool) -> Mapping[int, list[tuple[int, int]]]:
        """Return the offsets and values of each partition after the last failure."""
        return {
            each.partition: each.records
            for each in self.operations
            if isinstance(each, Poll) and each.is_final and each.committed_only is committed_only
        }

    def excerpt(self, operations: Iterable[AnyOperation], *, lines: int = 25) -> str:
        """Return the given operations, and the failures during them, as lines in order of time."""
        shown = sorted(operations, key=lambda each: each.invoked_ms)[:lines]
        if not shown:
            return ""
        first_ms = shown[0].invoked_ms - 1000
        last_ms = max((each.completed_ms for each in shown if each.completed_ms < inf), default=inf)
        events = [line for each in shown for line in _lines(each)]
        during = [(at_ms, f"failure: {what}") for at_ms, what in self.failures if first_ms <= at_ms <= last_ms]
        return "\n".join(f"{at_ms / 1e3:9.3f} s  {line}" for at_ms, line in sorted(events + during[:lines]))


def _lines(one: AnyOperation) -> Iterator[tuple[float, str]]:
    names = [name for name in type(one).__slots__ if name not in ("records", "guarantee")]
    fields = " ".join(f"{name}={getattr(one, name)}" for name in names)
    yield one.invoked_ms, f"{one.process} invoke {type(one).__name__} {fields}"
    if one.completed_ms < inf:
        offsets = f" {_short(one.records)}" if isinstance(one, Poll) else ""
        yield one.completed_ms, f"{one.process} {one.outcome.value} {type(one).__name__} {fields}{offsets}"


def _short(records: list[tuple[int, int]]) -> str:
    shown = ", ".join(f"{offset}: {value}" for offset, value in records[:8])
    return f"{{{shown}{', ...' if len(records) > 8 else ''}}}"
