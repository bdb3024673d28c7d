"""The events of one cluster, indexed for findings, and what a finding is."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeVar

from sluice import journal_events
from sluice.trace.attempts import Attempts
from sluice.trace.described import described_rule, has_failed
from sluice.trace.model import Severity

NS_PER_MS = 1_000_000
READ_COMMITTED = 1  # the isolation level in requests
NS_PER_S = 1_000_000_000
# The longest wait in a rebalance without trouble: members notice it by their heartbeats, every 3 s by default.
REBALANCE_NS = 5 * NS_PER_S
_E = TypeVar("_E", bound=journal_events.Event)
_K = TypeVar("_K")
_V = TypeVar("_V")


class Found(NamedTuple):
    """A finding, before it refers to bars and marks.

    names: client ids, topics, groups and rules concerned: a finding whose names are in the text of a failed assertion
        precedes others
    at_ns: its time
    seqs: events that show it
    """

    id: str
    severity: Severity
    title: str
    text: str
    at_ns: int
    seqs: Sequence[int]
    names: Sequence[str] = ()


class History:
    """Events in order of `seq`, of a trace that begins at `start_ns` and ends at `end_ns`.

    failed_ns: when the assertion failed; None if none did, or if the time is unknown. Later events explain nothing.
    """

    def __init__(
        self, events: Sequence[journal_events.AnyEvent], start_ns: int, end_ns: int, failed_ns: int | None = None
    ) -> None:
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.failed_ns = failed_ns
        self._of_type: dict[type[journal_events.Event], list[journal_events.Event]] = {}
        for event in events:
            self._of_type.setdefault(type(event), []).append(event)
        requests = self.of(journal_events.Request)
        self.requests = sorted(requests, key=_received)
        self.by_api = grouped(self.requests, lambda each: each.api)

    def of(self, kind: type[_E]) -> list[_E]:
        """Return the events of a type."""
        return self._of_type.get(kind, [])  # type: ignore[return-value]  # they are of that type

    def apis(self, *names: str) -> Sequence[journal_events.Request]:
        """Return the requests of some APIs, as they were received."""
        if len(names) == 1:
            return self.by_api.get(names[0], ())
        return sorted((each for name in names for each in self.by_api.get(name, ())), key=_received)

    def when(self, at_ns: int) -> str:
        """Return a time since the start, such as `+1.204 s`."""
        return f"+{(at_ns - self.start_ns) / NS_PER_S:.3f} s"

    @cached_property
    def failed(self) -> list[journal_events.Request]:
        """Requests with an error code, as they were received."""
        return [each for each in self.requests if each.error_codes]

    @cached_property
    def closed(self) -> dict[int, journal_events.ConnectionClosed]:
        """The ends of connections."""
        return {each.connection: each for each in self.of(journal_events.ConnectionClosed)}

    @cached_property
    def hits(self) -> dict[str, list[journal_events.Fault]]:
        """The hits of each fault rule."""
        return grouped(self.of(journal_events.Fault), lambda each: each.rule_id)

    def is_after_failure(self, at_ns: int) -> bool:
        """Return whether a time is after the failed assertion."""
        return self.failed_ns is not None and at_ns > self.failed_ns

    @cached_property
    def rule_texts(self) -> dict[str, str]:
        """Action and conditions of each fault rule."""
        added = [each for each in self.of(journal_events.RuleChange) if each.change == "added"]
        return {each.rule_id: described_rule(each.rule)[0] for each in added}

    @cached_property
    def chains(self) -> list[list[journal_events.Request]]:
        """Attempts of the same request, in order; a chain of one is a request that failed and was not sent again."""
        attempts = Attempts()
        for place, request in enumerate(self.requests):
            attempts.add(place, request)
        chains: dict[int, list[journal_events.Request]] = {}
        for place, request in enumerate(self.requests):
            number = attempts.chain_of(place)
            if number != journal_events.NO_ID:
                chains.setdefault(number, []).append(request)
            elif has_failed(request):
                chains[-place - 1] = [request]
        return [*chains.values()]

    @cached_property
    def reads_committed(self) -> bool:
        """Whether a client reads with isolation.level=read_committed."""
        return any(number_value(one.sent, "isolation_level") == READ_COMMITTED for one in self.apis("Fetch"))

    @cached_property
    def last_seen_ns(self) -> dict[str, int]:
        """When each client sent its last request."""
        return {client_of(each): each.received_ns for each in self.requests}


def _received(request: journal_events.Request) -> tuple[int, int]:
    return request.received_ns, request.seq


def grouped(items: Iterable[_V], key: Callable[[_V], _K]) -> dict[_K, list[_V]]:
    groups: dict[_K, list[_V]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def client_of(event: journal_events.ClientEvent) -> str:
    """Return the client id, or without one the software or the address."""
    return event.client_id or event.software_name or event.peer


def topics_of(requests: Iterable[journal_events.Request]) -> list[str]:
    """Return the topics that requests name, in order of first use."""
    return [*dict.fromkeys(partition.topic for each in requests for partition in each.partitions)]


def partitions_of(requests: Iterable[journal_events.Request]) -> dict[tuple[str, int], journal_events.TopicPartition]:
    return {(one.topic, one.partition): one for each in requests for one in each.partitions}


def duration(ns: float) -> str:
    """Return a duration such as `350 ms` or `5.125 s`."""
    ms = ns / NS_PER_MS
    if ms < 1:
        return f"{ms:.1g} ms"
    return f"{ms:.0f} ms" if ms < 999.5 else f"{ms / 1000:.3f}".rstrip("0").rstrip(".") + " s"


def listed(names: Iterable[object], most: int = 5) -> str:
    """Return up to `most` names, and the number of others."""
    texts = [*map(str, names)]
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" and {more} more" if more > 0 else "")


def seqs(events: Iterable[journal_events.Event]) -> list[int]:
    return [event.seq for event in events]


def text_value(fields: Mapping[str, object], name: str) -> str:
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def number_value(fields: Mapping[str, object], name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else journal_events.NO_ID
