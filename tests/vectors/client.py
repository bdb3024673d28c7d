"""Checks of the client's vectors: `exponential_backoff`, `connection_states`, `producer_config`."""

from collections.abc import Callable, Iterator
from math import inf, nextafter

from sluice.client.backoff import RETRY_JITTER, RETRY_MULTIPLIER, ExponentialBackoff, Uniform
from sluice.client.config import producer_config
from sluice.client.network.connection_states import ClusterConnectionStates
from sluice.errors import ConfigError
from tests.vectors import Vector
from tests.vectors.quotas import differences, double, integer

LONG_MAX = 2**63 - 1
# The number of evenly spread factors that stand for 20000 random ones, and the tolerance of their means: six standard
# deviations of the mean of that many draws, for a factor of at most ±100 %.
SPREAD = 2000
MEAN_TOLERANCE = 0.025


class Factors:
    """Returns the factors that Kafka drew; fails when a draw is missing or superfluous."""

    def __init__(self) -> None:
        self._factors: Iterator[float] = iter(())

    def will_be(self, factors: object) -> None:
        """Set the next draws."""
        assert isinstance(factors, list)
        self._factors = map(double, factors)

    def uniform(self, low: float, high: float) -> float:
        """Return the next draw."""
        factor = next(self._factors, None)
        assert factor is not None, "a factor is drawn where Kafka drew none"
        assert low <= factor < high, f"Kafka drew {factor}, outside of {low} to {high}"
        return factor

    def left(self) -> int:
        return len(list(self._factors))


def never(low: float, high: float) -> float:
    """Fail, for code that must not draw."""
    raise AssertionError(f"a factor is drawn from {low} to {high} where Kafka drew none")


def check_exponential_backoff(vector: Vector) -> list[str]:
    return BACKOFF_CHECKS[str(vector["kind"])](vector)


def exponential_backoff(vector: Vector, uniform: Uniform) -> ExponentialBackoff:
    initial, multiplier, most = (integer(vector[name]) for name in ("initial", "multiplier", "max"))
    return ExponentialBackoff(initial, multiplier, most, double(vector["jitter"]), uniform)


def check_exact(vector: Vector) -> list[str]:
    """Check without jitter."""
    attempts = vector["attempts"]
    assert isinstance(attempts, list)
    try:
        backoff = exponential_backoff(vector, never)
    except ValueError:
        return [] if vector.get("exception") == "IllegalArgumentException" else ["refused"]
    actual: Vector = {
        "backoff": [backoff.backoff(integer(attempt)) for attempt in attempts],
        "initial_interval": backoff.initial_ms,
        "exception": "none",
    }
    return list(differences({name: vector[name] for name in actual if name in vector}, actual))


def check_factors(vector: Vector) -> list[str]:
    """Check with the factors that Kafka drew."""
    factors, failures = Factors(), []
    backoff = exponential_backoff(vector, factors.uniform)
    draws = vector["draws"]
    assert isinstance(draws, list)
    for attempt, factor, expected in draws:
        factors.will_be([] if factor is None else [factor])
        actual = backoff.backoff(integer(attempt))
        if actual != expected or factors.left():
            failures.append(f"attempt {attempt} with factor {factor}: expected {expected}, got {actual}")
    return failures


def check_range(vector: Vector) -> list[str]:
    """Check that Kafka's draws lie within our range, and nearly fill it."""
    jitter = double(vector["jitter"])
    low, width = 1 - jitter, 2 * jitter
    ranges, failures = vector["ranges"], []
    assert isinstance(ranges, list)
    for row in ranges:
        factors = Factors()
        middles = [low + width * (k + 0.5) / SPREAD for k in range(SPREAD)]
        factors.will_be([low, nextafter(1 + jitter, low), *middles])
        backoff = exponential_backoff(vector, factors.uniform)
        least, most, *others = (backoff.backoff(integer(row["attempt"])) for _ in range(SPREAD + 2))
        mean = sum(others) / SPREAD
        if not least <= row["min"] <= row["max"] <= most or abs(mean - row["mean"]) > MEAN_TOLERANCE * mean:
            failures.append(f"attempt {row['attempt']}: {row} does not come from {least} to {most} around {mean}")
    return failures


BACKOFF_CHECKS = {"exact": check_exact, "factors": check_factors, "range": check_range}


def check_connection_states(vector: Vector) -> list[str]:
    """Check operations on `ClusterConnectionStates`, with and without jitter."""
    factors = Factors()
    states = connection_states(vector, RETRY_JITTER, factors.uniform)
    nominal = connection_states(vector, 0.0, never)
    events = vector["events"]
    assert isinstance(events, list)
    for number, event in enumerate(events):
        factors.will_be(event["random_factors"])
        for each in (states, nominal):
            operate(each, event)
        actual = observed(states, nominal, integer(event["t"]), int(event["id"]))
        expected = {name: value for name, value in event.items() if name not in INPUTS}
        differing = next(differences(expected, actual), None)
        if differing is None and factors.left():
            differing = "fewer factors were drawn"
        if differing is not None:
            return [f"event {number} at {event['t']}, {event['op']} {event['id']}: {differing}"]
    return []


INPUTS = {"t", "id", "dice", "op", "host", "until", "random_factors"}


def connection_states(vector: Vector, jitter: float, uniform: Uniform) -> ClusterConnectionStates:
    """Return the object under test with this jitter."""

    def backoff(name: str, maximum: str) -> ExponentialBackoff:
        return ExponentialBackoff(integer(vector[name]), RETRY_MULTIPLIER, integer(vector[maximum]), jitter, uniform)

    return ClusterConnectionStates(
        backoff("reconnect_backoff_ms", "reconnect_backoff_max_ms"),
        backoff("connection_setup_timeout_ms", "connection_setup_timeout_max_ms"),
    )


def operate(states: ClusterConnectionStates, event: Vector) -> None:
    now_ms, node_id = integer(event["t"]), int(str(event["id"]))
    match event["op"]:
        case "connecting":
            states.connecting(node_id, now_ms, str(event["host"]))
        case "checking_api_versions":
            states.checking_api_versions(node_id)
        case "ready":
            states.ready(node_id)
        case "disconnected":
            states.disconnected(node_id, now_ms)
        case "authentication_failed":
            states.authentication_failed(node_id, now_ms, PermissionError())
        case "throttle":
            states.throttle(node_id, integer(event["until"]))
        case "remove":
            states.remove(node_id)
        case op:
            assert op == "query", f"no such operation: {op}"


def observed(states: ClusterConnectionStates, nominal: ClusterConnectionStates, now_ms: int, node_id: int) -> Vector:
    """Return the observable state of a connection."""
    connection, without_jitter = states.get(node_id), nominal.get(node_id)
    said: Vector = {
        "state": connection and connection.state.name,
        "can_connect": states.can_connect(node_id, now_ms),
        "is_blacked_out": states.is_disconnected(node_id) and not states.can_connect(node_id, now_ms),
        "connection_delay_ms": milliseconds(states.connection_delay_ms(node_id, now_ms)),
        "throttle_delay_ms": states.throttle_delay_ms(node_id, now_ms),
        "poll_delay_ms": milliseconds(states.poll_delay_ms(node_id, now_ms)),
        "is_ready": states.is_ready(node_id, now_ms),
        "last_connect_attempt_ms": states.last_connect_attempt_ms(node_id),
        "nodes_with_connection_setup_timeout": sorted(
            str(one) for one in states._connecting if states.is_connection_setup_timeout(one, now_ms)
        ),
    }
    if connection is None or without_jitter is None:
        return said
    if states.is_connecting(node_id):
        said["is_connection_setup_timeout"] = states.is_connection_setup_timeout(node_id, now_ms)
    return said | {
        "failed_attempts": connection.failed_attempts,
        "failed_connect_attempts": connection.failed_connect_attempts,
        "reconnect_backoff_ms": connection.reconnect_backoff_ms,
        "connection_setup_timeout_ms": connection.connection_setup_timeout_ms,
        "nominal_reconnect_backoff_ms": without_jitter.reconnect_backoff_ms,
        "nominal_connection_setup_timeout_ms": without_jitter.connection_setup_timeout_ms,
    }


def milliseconds(value: float) -> float:
    """Return the value, or Java's Long.MAX_VALUE for infinity."""
    return LONG_MAX if value == inf else value


def check_producer_config(vector: Vector) -> list[str]:
    """Check which values a producer accepts, and the resulting configuration."""
    given = vector["config"]
    assert isinstance(given, dict)
    try:
        config = producer_config({"bootstrap.servers": "127.0.0.1:9092", **given})
    except ConfigError as error:
        return [] if vector.get("exception") == "ConfigException" else [f"refused: {error}"]
    effective = vector.get("effective", {})
    assert isinstance(effective, dict)
    actual: Vector = {
        "accepted": True,
        "effective": {name: config.value(name) for name in effective},
        "warnings": sorted(config.warnings),
    }
    warnings = vector.get("warnings", [])
    assert isinstance(warnings, list)
    expected = {"accepted": vector["accepted"], "effective": effective, "warnings": sorted(warnings)}
    return list(differences(expected, actual))


KINDS: dict[str, Callable[[Vector], list[str]]] = {
    "connection_states": check_connection_states,
    "exponential_backoff": check_exponential_backoff,
    "producer_config": check_producer_config,
}
