"""Settings of clients, as their requests state or show them, by the names of the Java client's properties."""

from collections import Counter
from collections.abc import Iterator
from enum import StrEnum

import msgspec

from sluice.lint.facts.subjects import ClientFacts

from .facts.committing import Committing
from .facts.connections import Connections
from .facts.fetching import Fetching
from .facts.joining import Joining
from .facts.measures.distribution import Distribution
from .facts.measures.waits import Rows
from .facts.producing import Producing
from .facts.retries import Retries
from .facts.throttles import Throttles
from .facts.transactions import Transactions

_LEAST_MEASURED = 5  # values, for a median that one of them does not decide
_MOST_VALUES = 3
_ISOLATION = {0: "read_uncommitted", 1: "read_committed"}
_US_PER_MS = 1000
_FETCH_FIELDS = {
    "fetch.max.wait.ms": "max_wait_ms",
    "fetch.min.bytes": "min_bytes",
    "fetch.max.bytes": "max_bytes",
    "max.partition.fetch.bytes": "partition_max_bytes",
}


class Certainty(StrEnum):
    """How sure a setting is.

    stated: requests have the value
    measured: it follows from the times or sizes of several requests, within their spread
    bound: it is at least the value
    """

    STATED = "stated"
    MEASURED = "measured"
    BOUND = "bound"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of one client.

    name: property of the Java client, such as linger.ms
    value: the value; several values with their shares if requests differ
    certainty: how sure it is
    basis: what shows it, such as "Produce requests: 1,204"
    """

    name: str
    value: str
    certainty: Certainty
    basis: str


def settings_of(facts: ClientFacts) -> list[Setting]:
    """Return what is known of the settings of a client."""
    return [
        *_producing(facts.producing),
        *_transactions(facts.transactions),
        *_fetching(facts.fetching),
        *_committing(facts.committing),
        *_joining(facts.joining),
        *_retries(facts.retries),
        *_connections(facts.connections),
        *_throttles(facts.throttles),
    ]


def _producing(facts: Producing) -> Iterator[Setting]:
    acks = Counter({"all" if value == -1 else str(value): count for value, count in facts.acks.items()})
    yield from _stated("acks", acks, "Produce requests")
    if facts.batches > facts.message_sets:
        kinds = Counter({"true": facts.idempotent, "false": facts.batches - facts.message_sets - facts.idempotent})
        yield from _stated("enable.idempotence", +kinds, "batches")
    yield from _stated("request.timeout.ms", facts.timeouts_ms, "Produce requests")
    yield from _stated("compression.type", facts.compression, "bytes of batches")
    yield from _measured("linger.ms", facts.linger_ms, "timestamps of batches")
    yield from _bound("batch.size", facts.batch_bytes.highest, f"batches: {facts.batch_bytes.count:,}")
    if facts.in_flight > 1:
        basis = f"Produce requests: {facts.requests:,}"
        yield from _bound("max.in.flight.requests.per.connection", facts.in_flight, basis)


def _transactions(facts: Transactions) -> Iterator[Setting]:
    timeouts = Counter(each.timeout_ms for each in facts.ids.values() if each.timeout_ms)
    yield from _stated("transaction.timeout.ms", timeouts, "transactional ids")


def _fetching(facts: Fetching) -> Iterator[Setting]:
    requests = "Fetch requests"
    for name, field in _FETCH_FIELDS.items():
        yield from _stated(name, facts.by(field), requests)
    levels = Counter({_ISOLATION.get(level, str(level)): n for level, n in facts.by("isolation_level").items()})
    yield from _stated("isolation.level", levels, requests)


def _committing(facts: Committing) -> Iterator[Setting]:
    yield from _measured("auto.commit.interval.ms", facts.interval_ms, "times between commits")


def _joining(facts: Joining) -> Iterator[Setting]:
    yield from _stated("group.protocol", facts.protocol_type, "joins")
    yield from _stated("partition.assignment.strategy", facts.assignors, "joins")
    yield from _stated("session.timeout.ms", facts.session_timeout_ms, "joins")
    yield from _stated("max.poll.interval.ms", facts.rebalance_timeout_ms, "joins")
    yield from _measured("heartbeat.interval.ms", facts.heartbeat_ms, "times between heartbeats")


def _retries(facts: Retries) -> Iterator[Setting]:
    for api, rows in facts.waits.items():
        yield from _backoff("retry.backoff", rows, f"of {api} requests")


def _connections(facts: Connections) -> Iterator[Setting]:
    yield from _measured("metadata.max.age.ms", facts.metadata_interval_ms, "times between Metadata requests")
    yield from _backoff("reconnect.backoff", facts.reconnects, "of connections")


def _backoff(name: str, rows: Rows, what: str) -> Iterator[Setting]:
    if rows.steps:
        yield from _measured(f"{name}.ms", rows.steps[0], f"first retries {what}", _US_PER_MS)
        yield from _bound(f"{name}.max.ms", rows.steps[-1].highest // _US_PER_MS, f"retry {len(rows.steps)} {what}")


def _throttles(facts: Throttles) -> Iterator[Setting]:
    if facts.responses:
        obeyed = facts.responses - facts.ignored
        value = f"obeyed in {obeyed:,} of {facts.responses:,}"
        basis = f"responses with a throttle time: {facts.responses:,}"
        yield Setting(name="throttle times", value=value, certainty=Certainty.MEASURED, basis=basis)


def _stated(name: str, counts: Counter[int] | Counter[str], what: str) -> Iterator[Setting]:
    total = counts.total()
    if not total:
        return
    first, *others = counts.most_common()
    value = str(first[0])
    if others:
        shares = [f"{each} ({count / total:.0%})" for each, count in (first, *others[: _MOST_VALUES - 1])]
        more = len(others) + 1 - _MOST_VALUES
        value = ", ".join(shares) + (f", {more} more" if more > 0 else "")
    yield Setting(name=name, value=value, certainty=Certainty.STATED, basis=f"{what}: {total:,}")


def _measured(name: str, values: Distribution, what: str, unit: int = 1) -> Iterator[Setting]:
    count = values.count
    if count < _LEAST_MEASURED:
        return
    low, median, high = (values.quantile(share) // unit for share in (0.1, 0.5, 0.9))
    value = str(median) if low == high else f"{median} (80 % from {low} to {high})"
    yield Setting(name=name, value=value, certainty=Certainty.MEASURED, basis=f"{what}: {count:,}")


def _bound(name: str, value: int, basis: str) -> Iterator[Setting]:
    if value:
        yield Setting(name=name, value=f"at least {value}", certainty=Certainty.BOUND, basis=basis)
