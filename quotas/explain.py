"""Explanations of throttling: per kind of quota the matching entity, the samples, and the last delay in numbers.

Nothing here affects enforcement, unlike `measure` (see `SampledStat`).
"""

from collections.abc import Iterable
from math import isnan, nan

from msgspec import Struct

from .entity import Name, QuotaRules
from .manager import ClientQuotaManager, ClientSensors
from .mutation_quota import MutationSensor
from .request_quota import ClientRequestQuotaManager
from .sensor import UNLIMITED, Rate, Violation

# Kind -> the counted unit; limits are per second.
UNITS = {
    "Produce": "bytes",
    "Fetch": "bytes",
    "Request": "percent of a thread",
    "ControllerMutation": "partitions",
}
# Kafka counts 10 ms of a thread as 1, so that its rate is a percentage.
_AMOUNT = {"Produce": "bytes", "Fetch": "bytes", "Request": "%·s", "ControllerMutation": "partitions"}
_RATE = {"Produce": "bytes/s", "Fetch": "bytes/s", "Request": "%", "ControllerMutation": "partitions/s"}


class Candidate(Struct):
    """An entity that matches the client; the first one with a limit applies."""

    user: str | None  # None: not part of the entity
    client_id: str | None
    bound: float | None  # None: not set
    holds: bool = False  # whether this limit applies


class SampleSeen(Struct):
    start_ms: int
    last_event_ms: int
    events: int
    value: float
    counts: bool  # False: stale, and dropped by the next `measure`


class Delay(Struct):
    """The last time that the client exceeded its quota."""

    at_ms: int
    value: float  # the charge
    throttle_ms: int
    arithmetic: str


class QuotaExplanation(Struct):
    """One kind of quota for one client."""

    kind: str
    unit: str
    why: str
    candidates: list[Candidate]
    user: str | None = None  # of the bucket; None: all users are counted together
    client_id: str | None = None
    bound: float | None = None  # None: unlimited
    rate: float | None = None  # None: nothing is recorded yet
    window_size_ms: int | None = None
    samples: list[SampleSeen] = []
    tokens: float | None = None  # of controller mutations, which have a token bucket
    arithmetic: str | None = None  # the calculation of `rate`
    last_delay: Delay | None = None
    throttle_time_avg_ms: float | None = None  # of throttled requests alone, as Kafka's metric; None without any


class ConnectionSeen(Struct):
    """A connection of the client.

    Throttle times are those of all requests of the last minute, 0 for those that were not throttled (KIP-13's client
    metrics).
    """

    peer: str
    waits: bool  # for the end of its throttle time, or for a response
    produce_throttle_time_avg_ms: float | None
    produce_throttle_time_max_ms: float | None
    fetch_throttle_time_avg_ms: float | None
    fetch_throttle_time_max_ms: float | None


class BrokerSeen(Struct):
    """The client's quotas and connections on one broker."""

    node_id: int
    quotas: list[QuotaExplanation]
    connections: list[ConnectionSeen]


class Explanation(Struct):
    client_id: str
    user: str
    profile: str
    mode: str  # of sluice.quota.mode: enforce, or shadow, which throttles no client
    at_ms: int
    brokers: list[BrokerSeen]


def explain(managers: Iterable[ClientQuotaManager], user: str, client_id: str, now_ms: int) -> list[QuotaExplanation]:
    return [_explain(manager, user, client_id, now_ms) for manager in managers]


def _explain(manager: ClientQuotaManager, user: str, client_id: str, now_ms: int) -> QuotaExplanation:
    rules = manager.rules
    bucket = rules.bucket(user, client_id)
    found = QuotaExplanation(
        kind=manager.kind,
        unit=UNITS[manager.kind],
        why=rules.why(user, client_id),
        candidates=_candidates(rules, user, client_id),
        user=bucket[0],
        client_id=bucket[1],
        bound=rules.limit(bucket) if manager.quotas_enabled else None,
    )
    sensors = manager.peek_sensors(bucket)
    if sensors is not None:
        _add_use(found, manager, sensors, now_ms)
    return found


def _candidates(rules: QuotaRules, user: str, client_id: str) -> list[Candidate]:
    bucket = rules.bucket(user, client_id)
    holding = rules.holding(bucket)
    return [
        Candidate(_shown(entity.user), _shown(entity.client_id), bound, holds=entity == holding and bound is not None)
        for entity, bound in rules.candidates(user, client_id)
    ]


def _add_use(found: QuotaExplanation, manager: ClientQuotaManager, sensors: ClientSensors, now_ms: int) -> None:
    sensor = sensors.quota
    rate = sensor.rate
    found.rate = rate.peek(now_ms)
    found.window_size_ms = rate.peek_window_size_ms(now_ms)
    found.samples = [
        SampleSeen(sample.start_ms, sample.last_event_ms, sample.event_count, sample.value, not stale)
        for sample, stale in rate.peek_samples(now_ms)
    ]
    average = nan if sensors.throttle_time is None else sensors.throttle_time.peek(now_ms)
    found.throttle_time_avg_ms = None if isnan(average) else average
    violation = sensor.last_violation
    if isinstance(sensor, MutationSensor):
        found.tokens = sensor.bucket.peek(now_ms)
        tokens, bound = format_amount(found.tokens, manager.kind), format_rate(sensor.bound, manager.kind)
        found.arithmetic = f"{tokens} in the token bucket, refilled at {bound}"
    else:
        found.arithmetic = _rate_in_numbers(rate, found)
    if violation is not None:
        in_numbers = _tokens_in_numbers if isinstance(sensor, MutationSensor) else _delay_in_numbers
        most_ms = manager.config.window_ms if isinstance(manager, ClientRequestQuotaManager) else None
        served_ms = violation.throttle_ms if most_ms is None else min(violation.throttle_ms, most_ms)
        text = in_numbers(violation, manager.kind)
        if served_ms < violation.throttle_ms:
            text += f", capped at one window: {served_ms:,} ms"
        found.last_delay = Delay(violation.at_ms, violation.value, served_ms, text)


def _rate_in_numbers(rate: Rate, found: QuotaExplanation) -> str:
    total = sum(sample.value for sample in found.samples if sample.counts)
    window_size_ms = found.window_size_ms or 0
    amount, rate_ = format_amount(total, found.kind), format_rate(found.rate or 0.0, found.kind)
    return f"{amount} / {window_size_ms / 1000:.3f} s = {rate_}"


def _delay_in_numbers(of: Violation, kind: str) -> str:
    """Return KIP-13's (O - T) / T * W."""
    rate, bound = format_rate(of.rate, kind), format_rate(of.bound, kind)
    return f"({rate} - {bound}) / {bound} * {of.window_size_ms:,} ms = {of.throttle_ms:,} ms"


def _tokens_in_numbers(of: Violation, kind: str) -> str:
    return f"{format_amount(-of.rate, kind)} of debt / {format_rate(of.bound, kind)} = {of.throttle_ms:,} ms"


def format_amount(value: float, kind: str) -> str:
    return f"{_number(value)} {_AMOUNT[kind]}"


def format_rate(value: float, kind: str) -> str:
    return _number(value) if value == UNLIMITED else f"{_number(value)} {_RATE[kind]}"


def _shown(name: Name) -> str | None:
    return None if name is None else str(name)


def _number(value: float) -> str:
    if value == UNLIMITED:
        return "unlimited"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"
