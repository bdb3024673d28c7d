"""Why a client waits: for each kind of quota which entity matched, what its bucket holds, its last delay in numbers.

Reads only: it changes nothing of what is enforced, as measuring would (see `SampledStat`).
"""

from collections.abc import Iterable

from msgspec import Struct

from .entity import Name, QuotaRules
from .manager import ClientQuotaManager, ClientSensors
from .mutation_quota import MutationSensor
from .request_quota import ClientRequestQuotaManager
from .sensor import UNLIMITED, Rate, Violation

# Kind -> what is counted; a bound is so many per second.
UNITS = {
    "Produce": "bytes",
    "Fetch": "bytes",
    "Request": "percent of a thread",
    "ControllerMutation": "partitions",
}


class Candidate(Struct):
    """An entity that may decide; the first that is set does."""

    user: str | None  # None: not part of the entity
    client_id: str | None
    bound: float | None  # None: not set
    holds: bool = False  # whether it is this one's bound that holds


class SampleSeen(Struct):
    """One sample of the window."""

    start_ms: int
    last_event_ms: int
    events: int
    value: float
    counts: bool  # False: it is stale, and dropped the next time something is recorded and measured


class Delay(Struct):
    """The last time that the client was found over its quota."""

    at_ms: int
    value: float  # what was recorded then
    throttle_ms: int
    arithmetic: str


class QuotaExplanation(Struct):
    """One kind of quota, of one client."""

    kind: str
    unit: str
    why: str
    candidates: list[Candidate]
    user: str | None = None  # the bucket's; None: it counts all users together
    client_id: str | None = None
    bound: float | None = None  # None: there is no limit
    rate: float | None = None  # None: nothing was recorded yet
    window_size_ms: int | None = None
    samples: list[SampleSeen] = []
    tokens: float | None = None  # of mutations, which are held to a bucket of tokens
    arithmetic: str | None = None  # what gives `rate`
    last_delay: Delay | None = None


class ConnectionSeen(Struct):
    """A connection of the client: what it was told in the last minute, as KIP-13 asks clients to tell it."""

    peer: str
    waits: bool  # for its throttle time, or for an answer
    produce_throttle_time_avg_ms: float | None
    produce_throttle_time_max_ms: float | None
    fetch_throttle_time_avg_ms: float | None
    fetch_throttle_time_max_ms: float | None


class BrokerSeen(Struct):
    """What one broker knows of the client."""

    node_id: int
    quotas: list[QuotaExplanation]
    connections: list[ConnectionSeen]


class Explanation(Struct):
    """What all brokers know of a client."""

    client_id: str
    user: str
    profile: str
    at_ms: int
    brokers: list[BrokerSeen]


def explain(managers: Iterable[ClientQuotaManager], user: str, client_id: str, now_ms: int) -> list[QuotaExplanation]:
    """One explanation for each manager, of what is known at `now_ms`, wall clock."""
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
    violation = sensor.last_violation
    if isinstance(sensor, MutationSensor):
        found.tokens = sensor.bucket.peek(now_ms)
        found.arithmetic = f"{_number(found.tokens)} tokens; {_number(sensor.bound)} more a second"
    else:
        found.arithmetic = _rate_in_numbers(rate, found)
    if violation is not None:
        in_numbers = _tokens_in_numbers if isinstance(sensor, MutationSensor) else _delay_in_numbers
        most_ms = manager.config.window_ms if isinstance(manager, ClientRequestQuotaManager) else None
        served_ms = violation.throttle_ms if most_ms is None else min(violation.throttle_ms, most_ms)
        text = in_numbers(violation)
        if served_ms < violation.throttle_ms:
            text += f", cut to a window: {served_ms} ms"
        found.last_delay = Delay(violation.at_ms, violation.value, served_ms, text)


def _rate_in_numbers(rate: Rate, found: QuotaExplanation) -> str:
    total = sum(sample.value for sample in found.samples if sample.counts)
    window_size_ms = found.window_size_ms or 0
    return f"{_number(total)} / {window_size_ms / 1000:.3f} s = {_number(found.rate or 0.0)} a second"


def _delay_in_numbers(of: Violation) -> str:
    """KIP-13's (O - T) / T * W."""
    rate, bound = _number(of.rate), _number(of.bound)
    return f"({rate} - {bound}) / {bound} * {of.window_size_ms} ms = {of.throttle_ms} ms"


def _tokens_in_numbers(of: Violation) -> str:
    return f"{_number(-of.rate)} tokens owed / {_number(of.bound)} a second = {of.throttle_ms} ms"


def _shown(name: Name) -> str | None:
    return None if name is None else str(name)


def _number(value: float) -> str:
    if value == UNLIMITED:
        return "unlimited"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"
