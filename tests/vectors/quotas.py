"""Checks of the quota vectors: three managers, `sensor_stats`, `token_bucket`. Doubles are compared bit by bit."""

from collections.abc import Callable, Iterator
from math import isnan, nan
from struct import pack
from sys import float_info

from sluice.quotas.entity import DEFAULT, Name, QuotaEntity, QuotaTable
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig
from sluice.quotas.mutation_quota import ControllerMutationQuota, ControllerMutationQuotaManager, MutationUsage
from sluice.quotas.request_quota import ClientRequestQuotaManager
from sluice.quotas.samples import Sample
from sluice.quotas.sensor import Rate, SampledStat
from sluice.quotas.stats import Avg, Max
from sluice.quotas.token_bucket import TokenBucket
from tests.vectors import Vector

ANONYMOUS = "ANONYMOUS"
ANY_NUMBER = 2**63 - 1  # of events in a sample, for vectors without an event window
UNIT_MS = {"MILLISECONDS": 1.0, "SECONDS": 1000.0, "MINUTES": 60.0 * 1000.0, "HOURS": 60.0 * 60.0 * 1000.0}


def check_quotas(vector: Vector) -> list[str]:
    """Check a `ClientQuotaManager` with a manual clock."""
    manager = ClientQuotaManager("Produce", windows(vector), QuotaTable("unlimited"))
    return first_difference(vector, lambda event: quota_event(manager, event))


def check_quotas_request(vector: Vector) -> list[str]:
    """Check a `ClientRequestQuotaManager`, which records thread time, in nanoseconds and percent-seconds."""
    manager = ClientRequestQuotaManager(windows(vector), QuotaTable("unlimited"))

    def request_event(event: Vector) -> Vector:
        if "nanos" not in event:
            return quota_event(manager, event)
        value = manager.percentage(integer(event["nanos"]))
        return {"nanos": event["nanos"], "value": value, **quota_event(manager, {**event, "value": value})}

    return first_difference(vector, request_event, inputs=INPUTS - {"value"})


def check_quotas_controller_mutation(vector: Vector) -> list[str]:
    """Check a `ControllerMutationQuotaManager`: each `mutate` is one request, each of `permits` one of its topics."""
    manager = ControllerMutationQuotaManager(windows(vector), QuotaTable("unlimited"))

    def mutation_event(event: Vector) -> Vector:
        if event["op"] != "mutate":
            return quota_event(manager, event)
        now_ms, user, client_id = integer(event["t"]), str(event.get("user", ANONYMOUS)), str(event["client_id"])
        quota = manager.quota_for(user, client_id, now_ms, strict=event["mode"] == "strict")
        permits = event["permits"]
        assert isinstance(permits, list)
        results = [mutation_result(quota, double(number)) for number in permits]
        seen: Vector = {
            "results": results,
            "is_exceeded": quota.is_exceeded,
            "throttle_ms": quota.throttle_time_ms(),
            "throttle_ms_later": quota.throttle_time_ms(integer(event.get("later_ms", 0))),
        }
        if not manager.quotas_enabled:
            return seen | {"rate": None}
        usage = manager.measure(user, client_id, now_ms)
        assert isinstance(usage, MutationUsage)
        return seen | {"tokens": usage.tokens, "bound": usage.bound, "mutation_rate": usage.rate}

    return first_difference(vector, mutation_event, inputs=INPUTS | {"mode", "permits", "later_ms"})


def mutation_result(quota: ControllerMutationQuota, permits: float) -> Vector:
    if quota.record(permits):
        return {"accepted": True}
    return {"accepted": False, "exception_throttle_ms": quota.throttle_time_ms()}


def windows(vector: Vector) -> QuotaConfig:
    return QuotaConfig(num_samples=integer(vector["num_samples"]), window_ms=integer(vector["window_s"]) * 1000)


def quota_event(manager: ClientQuotaManager, event: Vector) -> Vector:
    """Apply one event; return the resulting state of the manager."""
    now_ms = integer(event["t"])
    if event["op"] == "set_quota":
        bound = None if event["bound"] is None else double(event["bound"])
        manager.set_quota(QuotaEntity(entity_name(event["user"]), entity_name(event["client_id"])), bound)
        return {}
    user, client_id = str(event.get("user", ANONYMOUS)), str(event["client_id"])
    match event["op"]:
        case "max_value":
            return {"max_value": manager.max_value_in_quota_window(user, client_id)}
        case "record_no_throttle":
            manager.record_no_throttle(user, client_id, double(event["value"]), now_ms)
            return {}
        case "unrecord":
            manager.unrecord(user, client_id, double(event["value"]), now_ms)
            return {}
        case "measure":
            return usage(manager, user, client_id, now_ms)
        case "record":
            throttle_ms = manager.record(user, client_id, double(event["value"]), now_ms)
            return {"throttle_ms": throttle_ms, **usage(manager, user, client_id, now_ms)}
        case "record_and_throttle":
            throttle_ms = manager.record(user, client_id, double(event["value"]), now_ms)
            manager.record_throttle_time(user, client_id, throttle_ms, now_ms)
            return {"throttle_ms": throttle_ms, **usage(manager, user, client_id, now_ms)}
    raise ValueError(f"op {event['op']!r}")


def usage(manager: ClientQuotaManager, user: str, client_id: str, now_ms: int) -> Vector:
    """Return the measured usage of a client at `now_ms`, and the entity of its sensor."""
    if not manager.quotas_enabled:
        return {"rate": None}
    # The value of the metrics, before measuring drops samples; it must be the same.
    snapshot = {(client.user, client.client_id): client for client in manager.snapshot(now_ms)}
    measured = manager.measure(user, client_id, now_ms)
    assert measured is not None, "no sensor"
    assert str(snapshot[measured.user, measured.client_id]) == str(measured), "snapshot and measure differ"
    return {
        "rate": measured.rate,
        "bound": measured.bound,
        "window_ms": measured.window_size_ms,
        "throttle_time_avg": measured.throttle_time_avg_ms,
        "tags": {"user": measured.user, "client-id": measured.client_id},
    }


def check_sensor_stats(vector: Vector) -> list[str]:
    """Check one sensor with every statistic."""
    windows = (
        integer(vector["num_samples"]),
        integer(vector["window_ms"]),
        integer(vector["event_window"] or ANY_NUMBER),
    )
    stats: dict[str, SampledStat | _CumulativeSum] = {
        "rate_s": Rate(*windows),
        "rate_ms": Rate(*windows, unit_ms=1.0),
        "rate_count": Rate(*windows),
        "simple_rate": _SimpleRate(*windows),
        "avg": Avg(*windows),
        "max": Max(*windows),
        "min": _Min(*windows),
        "windowed_sum": SampledStat(*windows),
        "windowed_count": _WindowedCount(*windows),
        "cumulative_sum": _CumulativeSum(),
        "cumulative_count": _CumulativeCount(),
    }

    def event_values(event: Vector) -> Vector:
        now_ms = integer(event["t"])
        if "value" in event:
            for name, stat in stats.items():
                # The rate of events is the rate of ones.
                stat.record(1.0 if name == "rate_count" else double(event["value"]), now_ms)
        return {"values": {name: stat.measure(now_ms) for name, stat in stats.items()}} if event["measure"] else {}

    return first_difference(vector, event_values)


def check_token_bucket(vector: Vector) -> list[str]:
    """Check a token bucket with a quota."""
    bucket = TokenBucket(
        double(vector["bound"]),
        integer(vector["num_samples"]),
        integer(vector["window_ms"]),
        UNIT_MS[str(vector["unit"])],
    )

    def tokens(event: Vector) -> Vector:
        now_ms = integer(event["t"])
        if event["op"] == "set_quota":
            bucket.bound = double(event["bound"])
        elif event["op"] != "measure":
            bucket.record(double(event["value"]), now_ms)
        throttle_ms = bucket.throttle_time_ms(now_ms)
        left = bucket.measure(now_ms)
        return {"tokens": left, "violation": left < 0.0, "throttle_ms": throttle_ms}

    return first_difference(vector, tokens)


# The inputs of an event; its other fields are expected outputs.
INPUTS = frozenset({"t", "op", "user", "client_id", "value", "measure"})


def first_difference(vector: Vector, apply: Callable[[Vector], Vector], inputs: frozenset[str] = INPUTS) -> list[str]:
    """Apply the events in order until one differs."""
    events = vector["events"]
    assert isinstance(events, list)
    for number, event in enumerate(events):
        given = inputs | {"bound"} if event.get("op") == "set_quota" else inputs
        expected = {key: value for key, value in event.items() if key not in given}
        differing = next(differences(expected, apply(event)), None)
        if differing is not None:
            return [f"event {number} at {event['t']}: {differing}"]
    return []


def differences(expected: Vector, actual: Vector, path: str = "") -> Iterator[str]:
    """Yield the fields of `expected` that `actual` lacks or that differ."""
    for key, value in expected.items():
        found = actual.get(key, "nothing")
        if isinstance(value, dict) and isinstance(found, dict):
            yield from differences(value, found, f"{path}{key}.")
        elif not same(value, found):
            yield f"{path}{key}: expected {value!r}, got {found!r}"


def same(expected: object, actual: object) -> bool:
    """Return whether JSON values are equal; doubles must have equal bits (0.0 is not -0.0), except for NaN."""
    if isinstance(actual, float):
        if not isinstance(expected, float | int | str):
            return False
        return pack(">d", double(expected)) == pack(">d", nan if isnan(actual) else actual)
    return type(expected) is type(actual) and expected == actual


def double(value: object) -> float:
    """Return a double from its form in the vectors: a number, or a word for NaN and infinities."""
    assert isinstance(value, float | int | str), f"{value!r} is not a double"
    return float(value)


def integer(value: object) -> int:
    """Return an integer, which must not be written as a double."""
    assert isinstance(value, int), f"{value!r} is not an integer"
    return value


def entity_name(value: object) -> Name:
    """Return the name of the user or client id of a quota."""
    return DEFAULT if value == "<default>" else None if value is None else str(value)


KINDS: dict[str, Callable[[Vector], list[str]]] = {
    "quotas": check_quotas,
    "quotas_controller_mutation": check_quotas_controller_mutation,
    "quotas_request": check_quotas_request,
    "sensor_stats": check_sensor_stats,
    "token_bucket": check_token_bucket,
}


# Statistics of Kafka's sensors that the broker does not use: they check the ring of samples.


class _WindowedCount(SampledStat):
    __slots__ = ()

    def record(self, value: float, now_ms: int) -> None:
        super().record(1.0, now_ms)


class _SimpleRate(Rate):
    """A rate per second over the time since the oldest sample opened, at least one window.

    Kafka uses it for replication quotas. It measures a burst at its actual rate.
    """

    __slots__ = ()

    def padded_ms(self, elapsed_ms: int) -> int:
        return max(elapsed_ms, self._windows.window_ms)


class _Min(SampledStat):
    __slots__ = ()

    INITIAL = float_info.max  # Double.MAX_VALUE, not Infinity, as in Kafka

    def record(self, value: float, now_ms: int) -> None:
        self.open_sample(now_ms)
        self._value = min(self._value, value)

    def combine(self, samples: list[Sample]) -> float:
        return min((sample.value for sample in samples if sample.event_count), default=nan)


class _CumulativeSum:
    __slots__ = ("_total",)

    def __init__(self) -> None:
        self._total = 0.0

    def record(self, value: float, now_ms: int) -> None:
        self._total += value

    def measure(self, now_ms: int) -> float:
        return self._total


class _CumulativeCount(_CumulativeSum):
    __slots__ = ()

    def record(self, value: float, now_ms: int) -> None:
        super().record(1.0, now_ms)
