"""KIP-91: `delivery.timeout.ms` bounds the time from a batch's creation to its result.

It includes linger, retries and requests in flight. Each test name has the number of its statement in the reference.
"""

import asyncio
from itertools import pairwise

import pytest

from sluice import testing
from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import BlackHole
from sluice.broker.faults.actions.throttle import Throttle
from sluice.client.config import producer_config
from sluice.client.errors import ApiException, TimeoutException
from sluice.client.producer import Producer
from sluice.errors import ConfigError
from tests.support.producing import Stage, producing

RETRIED = Error("REQUEST_TIMED_OUT")
# Lateness of timers: an event-loop iteration is a nanosecond.
LATE_MS = 1.0


def fails_after(stage: Stage, value: bytes) -> float:
    """Return the time at which a record failed, which must be by a timeout."""
    end = stage.ends[value]
    assert isinstance(end.error, TimeoutException), end
    return end.at_ms


async def test_kip91_01_no_attempt_starts_after_the_delivery_timeout() -> None:
    async with producing({"delivery.timeout.ms": 5000, "request.timeout.ms": 2000}) as stage:
        stage.broker.faults.add(RETRIED, api="Produce")
        await stage.ended(await stage.send())
        await asyncio.sleep(60)
        assert len(stage.produced) > 5
        assert max(stage.produced_at_ms) <= 5000
        assert len({request.attempt_key for request in stage.produced}) == 1, "all requests are for that batch"


FAULTS = {"retries": RETRIED, "unanswered requests": BlackHole(), "slow error responses": Delay(ms=1700)}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
@pytest.mark.parametrize("delivery_timeout_ms", [2000, 5000, 120_000])
async def test_kip91_02_result_is_reported_within_the_delivery_timeout(
    fault: Error | BlackHole | Delay, delivery_timeout_ms: int
) -> None:
    async with producing({"delivery.timeout.ms": delivery_timeout_ms, "request.timeout.ms": 2000}) as stage:
        stage.broker.faults.add(fault, api="Produce")
        if isinstance(fault, Delay):
            stage.broker.faults.add(RETRIED, api="Produce")
        await stage.ended(await stage.send())
        assert fails_after(stage, b"v") == pytest.approx(delivery_timeout_ms, abs=LATE_MS)


async def test_kip91_03_timeout_counts_from_the_batch_not_from_each_record() -> None:
    async with producing({"linger.ms": 3000, "delivery.timeout.ms": 8000, "request.timeout.ms": 2000}) as stage:
        stage.broker.faults.add(RETRIED, api="Produce")
        first = await stage.send(b"first of the batch")
        await asyncio.sleep(2)
        second = await stage.send(b"second of the batch")
        await stage.ended(first, second)
        assert fails_after(stage, b"first of the batch") == pytest.approx(8000, abs=LATE_MS)
        assert fails_after(stage, b"second of the batch") == pytest.approx(8000, abs=LATE_MS)


async def test_kip91_04_unanswered_request_does_not_extend_the_timeout() -> None:
    async with producing({"delivery.timeout.ms": 5000, "request.timeout.ms": 2000}) as stage:
        stage.broker.faults.add(BlackHole(), api="Produce")
        await stage.ended(await stage.send())
        await asyncio.sleep(60)
        hits = stage.hits
        first, second, third = (at_ms for at_ms, _ in hits)
        assert first == pytest.approx(0, abs=LATE_MS)
        assert 2000 + 80 <= second <= 2000 + 120 + LATE_MS
        assert second + 2000 + 160 <= third <= second + 2000 + 240 + LATE_MS
        assert len({connection for _, connection in hits}) == 3, "each on a separate connection"
        assert fails_after(stage, b"v") == pytest.approx(5000, abs=LATE_MS)


def retried_and_then(stage: Stage, fault: BlackHole | Delay) -> None:
    """Fail the first attempt at once, so that the second is in flight when the batch expires."""
    stage.broker.faults.add(RETRIED, api="Produce", times=1)
    stage.broker.faults.add(fault, api="Produce", times=1)


IN_FLIGHT_AT_EXPIRY: dict[str, str | int] = {"delivery.timeout.ms": 5000, "request.timeout.ms": 5000}


async def test_kip91_05_batch_that_expires_in_flight_keeps_its_connection() -> None:
    async with producing(IN_FLIGHT_AT_EXPIRY) as stage:
        retried_and_then(stage, BlackHole())
        await stage.ended(await stage.send())
        assert fails_after(stage, b"v") == pytest.approx(5000, abs=LATE_MS)
        sent_at_ms, _ = stage.hits[-1]
        await asyncio.sleep((sent_at_ms + 5000 - LATE_MS - stage.now_ms) / 1e3)
        assert stage.in_flight == 1, "the request is still pending"
        await asyncio.sleep(2.5 * LATE_MS / 1e3)
        assert stage.in_flight == 0, "until the request timeout"


async def test_kip91_06_response_after_expiry_is_ignored() -> None:
    async with producing(IN_FLIGHT_AT_EXPIRY) as stage:
        retried_and_then(stage, Delay(ms=4950, when="after"))
        await stage.ended(await stage.send(b"late"))
        assert fails_after(stage, b"late") == pytest.approx(5000, abs=LATE_MS)
        await asyncio.sleep(10)
        assert stage.log() == [b"late"], "written although the send failed"
        await stage.ended(await stage.send(b"next"))
        assert stage.ends[b"next"].metadata is not None
        assert stage.log() == [b"late", b"next"]
        assert stage.closed_at_ms == []


@pytest.mark.parametrize("enable_idempotence", ["true", "false"])
async def test_kip91_07_with_one_in_flight_the_next_batch_waits_for_the_request_not_for_the_expiry(
    enable_idempotence: str,
) -> None:
    async with producing(
        {**IN_FLIGHT_AT_EXPIRY, "max.in.flight.requests.per.connection": 1, "enable.idempotence": enable_idempotence}
    ) as stage:
        retried_and_then(stage, Delay(ms=4950, when="after"))
        first = await stage.send(b"first")
        await asyncio.sleep(1)
        second = await stage.send(b"second")
        await stage.ended(first, second)
        assert fails_after(stage, b"first") == pytest.approx(5000, abs=LATE_MS)
        _, sent_at_ms, next_sent_at_ms = stage.produced_at_ms
        assert next_sent_at_ms == pytest.approx(sent_at_ms + 4950, abs=LATE_MS)
        assert stage.log() == [b"first", b"second"]


@pytest.mark.parametrize("in_flight", [1, 5])
async def test_kip91_08_batches_of_a_partition_expire_in_order(in_flight: int) -> None:
    values = [b"%d" % number for number in range(20)]
    async with producing(
        {
            "delivery.timeout.ms": 5000,
            "request.timeout.ms": 2000,
            "max.in.flight.requests.per.connection": in_flight,
            "batch.size": 1,
        }
    ) as stage:
        stage.broker.faults.add(RETRIED, api="Produce")
        futures = []
        for value in values:
            futures.append(await stage.send(value))
            await asyncio.sleep(0.1)
        await stage.ended(*futures)
        assert list(stage.ends) == values
        times = [fails_after(stage, value) for value in values]
        assert times == sorted(times)
        assert times[0] == pytest.approx(5000, abs=LATE_MS)


SERVERS = {"bootstrap.servers": "kafka:9092"}


def test_kip91_09_delivery_timeout_too_short_for_an_attempt_is_rejected() -> None:
    given: dict[str, str | int] = {
        **SERVERS,
        "delivery.timeout.ms": 1999,
        "linger.ms": 1000,
        "request.timeout.ms": 1000,
    }
    with pytest.raises(ConfigError, match=r"delivery.timeout.ms: expected at least linger.ms \+ request.timeout.ms"):
        Producer(given)


def test_kip91_10_default_delivery_timeout_is_raised_to_the_minimum() -> None:
    config = producer_config({**SERVERS, "linger.ms": 100_000, "request.timeout.ms": 50_000})
    assert config.integer("delivery.timeout.ms") == 150_000
    assert "delivery_timeout_raised" in config.warnings


def test_kip91_11_retry_backoff_is_not_part_of_the_minimum() -> None:
    given = {"delivery.timeout.ms": 2000, "linger.ms": 1000, "request.timeout.ms": 1000, "retry.backoff.ms": 60_000}
    assert producer_config({**SERVERS, **given}).integer("delivery.timeout.ms") == 2000
    with pytest.raises(ConfigError, match=r"retry.backoff.ms \(62000\)"):
        producer_config({**SERVERS, **given}, profile="kip")


@pytest.mark.parametrize(
    ("idempotence", "retries"), [("false", 0), ("false", 1), ("false", 4), ("true", 1), ("true", 4)]
)
async def test_kip91_12_retries_limit_the_attempts_before_the_timeout(idempotence: str, retries: int) -> None:
    async with producing({"retries": retries, "enable.idempotence": idempotence}) as stage:
        stage.broker.faults.add(RETRIED, api="Produce")
        await stage.ended(await stage.send())
        assert len(stage.produced) == retries + 1
        assert stage.ends[b"v"].at_ms < 5000
        assert isinstance(stage.ends[b"v"].error, TimeoutException), "the broker's error"


async def test_kip91_13_request_timeout_does_not_expire_queued_batches() -> None:
    async with producing({"request.timeout.ms": 1000}) as stage:
        testing.network().partition("localhost")
        future = await stage.send()
        asyncio.get_running_loop().call_later(60, testing.network().heal)
        await stage.ended(future)
        assert stage.ends[b"v"].metadata is not None
        assert 60_000 <= stage.ends[b"v"].at_ms < 62_000
        assert stage.log() == [b"v"]


async def test_kip91_14_default_delivery_timeout_is_two_minutes() -> None:
    async with producing() as stage:
        stage.broker.faults.add(Error("NOT_ENOUGH_REPLICAS"), api="Produce")
        await stage.ended(await stage.send())
        assert fails_after(stage, b"v") == pytest.approx(120_000, abs=LATE_MS)
        times = stage.produced_at_ms
        assert sum(time_ms < 1000 for time_ms in times) in (4, 5)
        gaps = [after - before for before, after in pairwise(times[6:])]
        assert min(gaps) >= 800
        assert max(gaps) <= 1000 + LATE_MS


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "INVALID_REQUIRED_ACKS", "MESSAGE_TOO_LARGE"])
async def test_kip91_15_fatal_error_is_not_retried(code: str) -> None:
    async with producing() as stage:
        stage.broker.faults.add(Error(code), api="Produce")
        await stage.ended(await stage.send())
        error = stage.ends[b"v"].error
        assert isinstance(error, ApiException)
        assert error.code.name == code
        assert len(stage.produced) == 1


async def test_kip91_15_too_large_batch_is_split_without_using_a_retry() -> None:
    values = [bytes([number]) * 500 for number in range(8)]
    async with producing(
        {"retries": 1, "linger.ms": 10, "batch.size": 5000}, broker_config={"message.max.bytes": 700}
    ) as stage:
        futures = [await stage.send(value) for value in values]
        await stage.ended(*futures)
        assert stage.log() == values
        assert list(stage.ends) == values
        attempts = [request.error_codes for request in stage.produced]
        assert attempts.count([10]) >= 2, "neither 4,000 bytes nor 2,000 fit"
        assert attempts.count([]) + attempts.count([0]) == 8


async def test_kip91_16_timeout_includes_throttle_time() -> None:
    async with producing({"delivery.timeout.ms": 5000, "request.timeout.ms": 2000}) as stage:
        stage.broker.faults.add(Throttle(throttle_time_ms=10_000), api="Produce", times=1)
        await stage.ended(await stage.send(b"throttled"))
        await stage.ended(await stage.send(b"waits"))
        assert stage.ends[b"throttled"].metadata is not None
        assert fails_after(stage, b"waits") == pytest.approx(5000, abs=LATE_MS)
        await asyncio.sleep(60)
        assert stage.log() == [b"throttled"]


# -- the KIP's examples ------------------------------------------------------------------------------------------------


PHASES = {
    "while it is in an open batch": ("batching", {"linger.ms": 4000, "request.timeout.ms": 2000}),
    "without a broker": ("waiting", {}),
    "between retries": ("retries", {}),
    "on its way": ("in flight", {"request.timeout.ms": 6000}),
    "with one request in flight": ("all", {"linger.ms": 2000, "request.timeout.ms": 2000}),
}


@pytest.mark.parametrize(("phase", "config"), PHASES.values(), ids=PHASES)
async def test_kip91_example_timeout_applies_in_every_phase(phase: str, config: dict[str, str | int]) -> None:
    async with producing({"delivery.timeout.ms": 6000, "request.timeout.ms": 2000, **config}) as stage:
        if phase in ("batching", "waiting"):
            testing.network().partition("localhost")
        elif phase == "retries":
            stage.broker.faults.add(RETRIED, api="Produce")
        else:
            stage.broker.faults.add(RETRIED, api="Produce", times=3 if phase == "all" else 1)
            stage.broker.faults.add(BlackHole(), api="Produce")
        await stage.ended(await stage.send())
        assert fails_after(stage, b"v") == pytest.approx(6000, abs=LATE_MS)


@pytest.mark.parametrize("enable_idempotence", ["true", "false"])
async def test_kip91_example_mirror_maker_slow_metadata_expires_no_batch_early(enable_idempotence: str) -> None:
    """MirrorMaker with one request in flight does not stop while metadata is unanswered.

    Before KIP-91, `request.timeout.ms` expired queued batches. Only `delivery.timeout.ms` does now.
    """
    async with producing(
        {
            "max.in.flight.requests.per.connection": 1,
            "enable.idempotence": enable_idempotence,
            "request.timeout.ms": 2000,
            "reconnect.backoff.ms": 1000,
            "delivery.timeout.ms": 20_000,
            "batch.size": 1,
        }
    ) as stage:
        stage.broker.faults.add(BlackHole(), api="Metadata", times=2)
        stage.producer._metadata.request_update()
        await asyncio.sleep(0.5)
        assert stage.in_flight == 1, "the only request allowed in flight"
        values = [b"%d" % number for number in range(20)]
        futures, sent_at_ms = [], []
        for value in values:
            sent_at_ms.append(stage.now_ms)
            futures.append(await stage.send(value))
            await asyncio.sleep(0.2)
        await stage.ended(*futures)
        waited_ms = [stage.ends[value].at_ms - at_ms for value, at_ms in zip(values, sent_at_ms, strict=True)]
        assert max(waited_ms) > 2000, "some waited longer than request.timeout.ms"
        assert [end.error for end in stage.ends.values()] == [None] * len(values)
        assert stage.log() == values
