"""KIP-91: `delivery.timeout.ms` bounds how long a record takes, from when its batch is made to its end, over waiting in
the batch, retries and requests on their way. The numbers are those of the reference's statements.
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
from tests.support.producing import Stage, on_stage

RETRIED = Error("REQUEST_TIMED_OUT")
# How late what is due may be: a turn of the loop is a nanosecond.
LATE_MS = 1.0


def fails_after(stage: Stage, value: bytes) -> float:
    """When a record failed, which has to be by a timeout."""
    end = stage.ends[value]
    assert isinstance(end.error, TimeoutException), end
    return end.at_ms


def test_kip91_01_no_attempt_starts_later_than_the_delivery_timeout_after_the_batch_was_made() -> None:
    async def test(stage: Stage) -> None:
        stage.broker.faults.add(RETRIED, api="Produce")
        await stage.ended(await stage.send())
        await asyncio.sleep(60)
        assert len(stage.produced) > 5
        assert max(stage.produced_at_ms) <= 5000
        assert len({request.attempt_key for request in stage.produced}) == 1, "all of them are of that batch"

    on_stage(test, {"delivery.timeout.ms": 5000, "request.timeout.ms": 2000})


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(RETRIED, id="retries"),
        pytest.param(BlackHole(), id="requests that are not answered"),
        pytest.param(Delay(ms=1700), id="slow answers with errors"),
    ],
)
@pytest.mark.parametrize("delivery_timeout_ms", [2000, 5000, 120_000])
def test_kip91_02_the_end_is_told_within_the_delivery_timeout(
    fault: Error | BlackHole | Delay, delivery_timeout_ms: int
) -> None:
    async def test(stage: Stage) -> None:
        stage.broker.faults.add(fault, api="Produce")
        if isinstance(fault, Delay):
            stage.broker.faults.add(RETRIED, api="Produce")
        await stage.ended(await stage.send())
        assert fails_after(stage, b"v") == pytest.approx(delivery_timeout_ms, abs=LATE_MS)

    on_stage(test, {"delivery.timeout.ms": delivery_timeout_ms, "request.timeout.ms": 2000})


def test_kip91_03_the_time_runs_from_the_batch_and_not_from_each_record() -> None:
    async def test(stage: Stage) -> None:
        stage.broker.faults.add(RETRIED, api="Produce")
        first = await stage.send(b"first of the batch")
        await asyncio.sleep(2)
        second = await stage.send(b"second of the batch")
        await stage.ended(first, second)
        assert fails_after(stage, b"first of the batch") == pytest.approx(8000, abs=LATE_MS)
        assert fails_after(stage, b"second of the batch") == pytest.approx(8000, abs=LATE_MS)

    on_stage(test, {"linger.ms": 3000, "delivery.timeout.ms": 8000, "request.timeout.ms": 2000})


def test_kip91_04_a_request_that_is_not_answered_does_not_extend_it() -> None:
    async def test(stage: Stage) -> None:
        stage.broker.faults.add(BlackHole(), api="Produce")
        await stage.ended(await stage.send())
        await asyncio.sleep(60)
        hits = stage.hits
        first, second, third = (at_ms for at_ms, _ in hits)
        assert first == pytest.approx(0, abs=LATE_MS)
        assert 2000 + 80 <= second <= 2000 + 120 + LATE_MS
        assert second + 2000 + 160 <= third <= second + 2000 + 240 + LATE_MS
        assert len({connection for _, connection in hits}) == 3, "each on a connection of its own"
        assert fails_after(stage, b"v") == pytest.approx(5000, abs=LATE_MS)

    on_stage(test, {"delivery.timeout.ms": 5000, "request.timeout.ms": 2000})


def retried_and_then(stage: Stage, fault: BlackHole | Delay) -> None:
    """A first attempt that fails at once, so that the second is on its way when the batch's time is over."""
    stage.broker.faults.add(RETRIED, api="Produce", times=1)
    stage.broker.faults.add(fault, api="Produce", times=1)


IN_FLIGHT_AT_EXPIRY: dict[str, str | int] = {"delivery.timeout.ms": 5000, "request.timeout.ms": 5000}


def test_kip91_05_a_batch_that_runs_out_of_time_on_its_way_leaves_its_connection_alone() -> None:
    async def test(stage: Stage) -> None:
        retried_and_then(stage, BlackHole())
        await stage.ended(await stage.send())
        assert fails_after(stage, b"v") == pytest.approx(5000, abs=LATE_MS)
        sent_at_ms, _ = stage.hits[-1]
        await asyncio.sleep((sent_at_ms + 5000 - LATE_MS - stage.now_ms) / 1e3)
        assert stage.in_flight == 1, "it waits for the answer"
        await asyncio.sleep(2.5 * LATE_MS / 1e3)
        assert stage.in_flight == 0, "until the request's own time is over"

    on_stage(test, IN_FLIGHT_AT_EXPIRY)


def test_kip91_06_an_answer_that_comes_after_the_end_is_not_heard() -> None:
    async def test(stage: Stage) -> None:
        retried_and_then(stage, Delay(ms=4950, when="after"))
        await stage.ended(await stage.send(b"late"))
        assert fails_after(stage, b"late") == pytest.approx(5000, abs=LATE_MS)
        await asyncio.sleep(10)
        assert stage.log() == [b"late"], "it was written, although it failed"
        await stage.ended(await stage.send(b"next"))
        assert stage.ends[b"next"].metadata is not None
        assert stage.log() == [b"late", b"next"]
        assert stage.closed_at_ms == []

    on_stage(test, IN_FLIGHT_AT_EXPIRY)


@pytest.mark.parametrize("enable_idempotence", ["true", "false"])
def test_kip91_07_with_one_in_flight_the_next_batch_waits_for_the_request_and_not_for_the_end(
    enable_idempotence: str,
) -> None:
    async def test(stage: Stage) -> None:
        retried_and_then(stage, Delay(ms=4950, when="after"))
        first = await stage.send(b"first")
        await asyncio.sleep(1)
        second = await stage.send(b"second")
        await stage.ended(first, second)
        assert fails_after(stage, b"first") == pytest.approx(5000, abs=LATE_MS)
        _, sent_at_ms, next_sent_at_ms = stage.produced_at_ms
        assert next_sent_at_ms == pytest.approx(sent_at_ms + 4950, abs=LATE_MS)
        assert stage.log() == [b"first", b"second"]

    on_stage(
        test,
        {
            **IN_FLIGHT_AT_EXPIRY,
            "max.in.flight.requests.per.connection": 1,
            "enable.idempotence": enable_idempotence,
        },
    )


@pytest.mark.parametrize("in_flight", [1, 5])
def test_kip91_08_batches_of_a_partition_run_out_of_time_in_their_order(in_flight: int) -> None:
    values = [b"%d" % number for number in range(20)]

    async def test(stage: Stage) -> None:
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

    on_stage(
        test,
        {
            "delivery.timeout.ms": 5000,
            "request.timeout.ms": 2000,
            "max.in.flight.requests.per.connection": in_flight,
            "batch.size": 1,
        },
    )


SERVERS = {"bootstrap.servers": "kafka:9092"}


def test_kip91_09_one_that_leaves_no_time_for_an_attempt_is_refused() -> None:
    given: dict[str, str | int] = {
        **SERVERS,
        "delivery.timeout.ms": 1999,
        "linger.ms": 1000,
        "request.timeout.ms": 1000,
    }
    with pytest.raises(
        ConfigError, match=r"delivery.timeout.ms=1999: must be at least linger.ms \+ request.timeout.ms"
    ):
        Producer(given)


def test_kip91_10_one_that_was_not_set_is_raised_to_that() -> None:
    config = producer_config({**SERVERS, "linger.ms": 100_000, "request.timeout.ms": 50_000})
    assert config.integer("delivery.timeout.ms") == 150_000
    assert "delivery_timeout_raised" in config.warnings


def test_kip91_11_the_retry_backoff_is_no_part_of_that() -> None:
    given = {"delivery.timeout.ms": 2000, "linger.ms": 1000, "request.timeout.ms": 1000, "retry.backoff.ms": 60_000}
    assert producer_config({**SERVERS, **given}).integer("delivery.timeout.ms") == 2000
    with pytest.raises(ConfigError, match=r"retry.backoff.ms \(62000\)"):
        producer_config({**SERVERS, **given}, profile="kip")


@pytest.mark.parametrize(
    ("idempotence", "retries"), [("false", 0), ("false", 1), ("false", 4), ("true", 1), ("true", 4)]
)
def test_kip91_12_retries_limit_the_attempts_though_there_is_time(idempotence: str, retries: int) -> None:
    async def test(stage: Stage) -> None:
        stage.broker.faults.add(RETRIED, api="Produce")
        await stage.ended(await stage.send())
        assert len(stage.produced) == retries + 1
        assert stage.ends[b"v"].at_ms < 5000
        assert isinstance(stage.ends[b"v"].error, TimeoutException), "the broker's own"

    on_stage(test, {"retries": retries, "enable.idempotence": idempotence})


def test_kip91_13_the_request_timeout_ends_no_batch_that_waits() -> None:
    async def test(stage: Stage) -> None:
        testing.network().partition("localhost")
        future = await stage.send()
        asyncio.get_running_loop().call_later(60, testing.network().heal)
        await stage.ended(future)
        assert stage.ends[b"v"].metadata is not None
        assert 60_000 <= stage.ends[b"v"].at_ms < 62_000
        assert stage.log() == [b"v"]

    on_stage(test, {"request.timeout.ms": 1000})


def test_kip91_14_by_default_it_is_tried_for_two_minutes() -> None:
    async def test(stage: Stage) -> None:
        stage.broker.faults.add(Error("NOT_ENOUGH_REPLICAS"), api="Produce")
        await stage.ended(await stage.send())
        assert fails_after(stage, b"v") == pytest.approx(120_000, abs=LATE_MS)
        times = stage.produced_at_ms
        assert sum(time_ms < 1000 for time_ms in times) in (4, 5)
        gaps = [after - before for before, after in pairwise(times[6:])]
        assert min(gaps) >= 800
        assert max(gaps) <= 1000 + LATE_MS

    on_stage(test)


@pytest.mark.parametrize("code", ["TOPIC_AUTHORIZATION_FAILED", "INVALID_REQUIRED_ACKS", "MESSAGE_TOO_LARGE"])
def test_kip91_15_what_is_not_worth_it_is_not_tried_again(code: str) -> None:
    async def test(stage: Stage) -> None:
        stage.broker.faults.add(Error(code), api="Produce")
        await stage.ended(await stage.send())
        error = stage.ends[b"v"].error
        assert isinstance(error, ApiException)
        assert error.code.name == code
        assert len(stage.produced) == 1

    on_stage(test)


def test_kip91_15_a_batch_that_is_too_large_is_split_which_costs_no_retry() -> None:
    values = [bytes([number]) * 500 for number in range(8)]

    async def test(stage: Stage) -> None:
        futures = [await stage.send(value) for value in values]
        await stage.ended(*futures)
        assert stage.log() == values
        assert list(stage.ends) == values
        attempts = [request.error_codes for request in stage.produced]
        assert attempts.count([10]) >= 2, "4,000 bytes do not fit, and neither do 2,000"
        assert attempts.count([]) + attempts.count([0]) == 8

    on_stage(test, {"retries": 1, "linger.ms": 10, "batch.size": 5000}, broker_config={"message.max.bytes": 700})


def test_kip91_16_the_time_runs_while_the_broker_throttles() -> None:
    async def test(stage: Stage) -> None:
        stage.broker.faults.add(Throttle(throttle_time_ms=10_000), api="Produce", times=1)
        await stage.ended(await stage.send(b"throttled"))
        await stage.ended(await stage.send(b"waits"))
        assert stage.ends[b"throttled"].metadata is not None
        assert fails_after(stage, b"waits") == pytest.approx(5000, abs=LATE_MS)
        await asyncio.sleep(60)
        assert stage.log() == [b"throttled"]

    on_stage(test, {"delivery.timeout.ms": 5000, "request.timeout.ms": 2000})


# -- the text's examples -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "config"),
    [
        pytest.param("batching", {"linger.ms": 4000, "request.timeout.ms": 2000}, id="while it waits in the batch"),
        pytest.param("waiting", {}, id="while there is no broker"),
        pytest.param("retries", {}, id="between retries"),
        pytest.param("in flight", {"request.timeout.ms": 6000}, id="on its way"),
        pytest.param("all", {"linger.ms": 2000, "request.timeout.ms": 2000}, id="in one after the other"),
    ],
)
def test_kip91_example_the_bound_holds_in_every_phase(phase: str, config: dict[str, str | int]) -> None:
    async def test(stage: Stage) -> None:
        if phase in ("batching", "waiting"):
            testing.network().partition("localhost")
        elif phase == "retries":
            stage.broker.faults.add(RETRIED, api="Produce")
        else:
            stage.broker.faults.add(RETRIED, api="Produce", times=3 if phase == "all" else 1)
            stage.broker.faults.add(BlackHole(), api="Produce")
        await stage.ended(await stage.send())
        assert fails_after(stage, b"v") == pytest.approx(6000, abs=LATE_MS)

    on_stage(test, {"delivery.timeout.ms": 6000, "request.timeout.ms": 2000, **config})


@pytest.mark.parametrize("enable_idempotence", ["true", "false"])
def test_kip91_example_of_mirror_maker_metadata_on_its_way_lets_no_batch_run_out_of_time_early(
    enable_idempotence: str,
) -> None:
    """With one request in flight, batches waited behind metadata that nobody answered, and their `request.timeout.ms`
    ran out meanwhile: MirrorMaker, which loses nothing, stopped. Now only `delivery.timeout.ms` counts.
    """

    async def test(stage: Stage) -> None:
        stage.broker.faults.add(BlackHole(), api="Metadata", times=2)
        stage.producer._metadata.request_update()
        await asyncio.sleep(0.5)
        assert stage.in_flight == 1, "the one request that may be on its way"
        values = [b"%d" % number for number in range(20)]
        futures, sent_at_ms = [], []
        for value in values:
            sent_at_ms.append(stage.now_ms)
            futures.append(await stage.send(value))
            await asyncio.sleep(0.2)
        await stage.ended(*futures)
        waited_ms = [stage.ends[value].at_ms - at_ms for value, at_ms in zip(values, sent_at_ms, strict=True)]
        assert max(waited_ms) > 2000, "some waited for longer than request.timeout.ms"
        assert [end.error for end in stage.ends.values()] == [None] * len(values)
        assert stage.log() == values

    on_stage(
        test,
        {
            "max.in.flight.requests.per.connection": 1,
            "enable.idempotence": enable_idempotence,
            "request.timeout.ms": 2000,
            "reconnect.backoff.ms": 1000,
            "delivery.timeout.ms": 20_000,
            "batch.size": 1,
        },
    )
