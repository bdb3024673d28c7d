"""KIP-580, retry backoff: the testable statements about metadata and admin calls, in virtual time.

Each test name has the number of its statement.
"""

import asyncio
from random import Random

import pytest

from sluice import testing
from sluice.client.admin.calls import AdminCalls
from sluice.client.admin.topics import NewTopic, TopicAdmin
from sluice.client.config import Profile, admin_config, producer_config
from sluice.client.metadata.metadata import Metadata
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.client.producer.metadata import ProducerMetadata
from sluice.client.retry_sites import RetrySite, backoff_at
from sluice.clock import LoopClock
from sluice.protocol.apis.create_topics import CreatableTopicResult, CreateTopicsResponse
from sluice.protocol.errors import ErrorCode
from tests.support.client_network import ReceivedRequest, ScriptedBroker, VirtualNetwork
from tests.support.consuming import gaps

STEPS = [100, 200, 400, 800, 1000, 1000, 1000]


@pytest.fixture(params=range(4))
def seed(request: pytest.FixtureRequest) -> int:
    number = request.param
    assert isinstance(number, int)
    return number


def within(found: list[float], steps: list[int], slack_ms: float = 2) -> bool:
    """Return whether gaps are within 20 % of the steps, and at most the maximum."""
    return len(found) >= len(steps) and all(
        0.8 * step <= gap <= min(1.2 * step, 1000) + slack_ms for gap, step in zip(found, steps, strict=False)
    )


def admin_retries(seed: int, ms: int, profile: Profile = "kafka", **given: int) -> list[float]:
    """Return the request times of an admin client whose controller returns only retriable errors."""

    def later(request: ReceivedRequest) -> CreateTopicsResponse:
        code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=topic.name, error_code=code) for topic in request.message.topics]
        )

    async def main() -> list[float]:
        loop = asyncio.get_running_loop()
        network = VirtualNetwork(LoopClock(loop))
        broker = network.broker(1, "a:9092")
        broker.responses["CreateTopics"] = later
        named = {name.replace("_", "."): value for name, value in given.items()}
        config = admin_config({"bootstrap.servers": "a:9092", **named}, profile)
        random = Random(seed)
        backoff = backoff_at(RetrySite.ADMIN_METADATA, config, random.uniform)
        client = network.client(config, Metadata(backoff, 300_000, equivalent_backoff=None), seed=random)
        admin = TopicAdmin()
        admin._calls = AdminCalls(AsyncNetwork(client, loop, network), config, random)
        await admin.create_topics([NewTopic("t")], timeout_ms=ms)
        return broker.request_times_ms("CreateTopics")

    return testing.run(main(), seed=seed)


class Sending:
    """A producer's client that requests metadata of a topic."""

    def __init__(self, seed: int, profile: Profile = "kafka", **given: str) -> None:
        self.network = VirtualNetwork()
        self.broker: ScriptedBroker = self.network.broker(1, "a:9092")
        named = {name.replace("_", "."): value for name, value in given.items()}
        config = producer_config({"bootstrap.servers": "a:9092", **named}, profile)
        random = Random(seed)
        self.metadata = ProducerMetadata(
            backoff_at(RetrySite.METADATA, config, random.uniform),
            300_000,
            300_000,
            equivalent_backoff=config.equivalent_response_backoff(random.uniform),
        )
        self.client = self.network.client(config, self.metadata, seed=random)

    def add(self, topic: str, ms: float) -> None:
        """Request metadata of a topic, and let this time pass."""
        self.metadata.add(topic, self.network.clock.monotonic_ms())
        self.client.wakeup()
        self.network.advance(ms)


def test_kip580_02_backoff_at_the_cap_is_800_to_1000_ms(seed: int) -> None:
    at_the_cap = gaps(admin_retries(seed, 20_000))[4:]
    assert len(at_the_cap) > 10
    assert all(800 <= gap <= 1002 for gap in at_the_cap), at_the_cap


def test_kip580_03_base_above_the_maximum_is_the_maximum_without_jitter(seed: int) -> None:
    found = gaps(admin_retries(seed, 2000, retry_backoff_ms=500, retry_backoff_max_ms=200))
    assert len(found) > 5
    assert all(200 <= gap < 201 for gap in found), found


def test_kip580_04_equal_base_and_maximum_have_no_jitter(seed: int) -> None:
    found = gaps(admin_retries(seed, 2000, retry_backoff_ms=200, retry_backoff_max_ms=200))
    assert len(found) > 5
    assert all(200 <= gap < 201 for gap in found), found


def test_kip580_04_with_the_kip_profile_the_first_gap_has_jitter() -> None:
    given = {"retry_backoff_ms": 200, "retry_backoff_max_ms": 200}
    found = [gaps(admin_retries(seed, 1000, "kip", **given)) for seed in range(8)]
    assert all(160 <= first < 201 for first, *_ in found), found
    assert min(first for first, *_ in found) < 190
    # Twice the base exceeds the maximum, with any jitter.
    assert all(200 <= gap < 201 for _, *others in found for gap in others), found


def test_kip580_08_unknown_topic_is_requested_with_growing_backoff(seed: int) -> None:
    sending = Sending(seed)
    sending.add("nowhere", 8000)
    times = sending.broker.request_times_ms("Metadata")
    assert times[0] == 0, "a new topic does not wait"
    assert within(gaps(times), STEPS), gaps(times)


def test_kip580_08_new_topic_does_not_wait_for_others(seed: int) -> None:
    sending = Sending(seed)
    sending.add("nowhere", 4000)
    sending.broker.topics["t"] = [1]
    sending.add("t", 0)
    assert sending.metadata.cluster.partitions_of("t") == [0]


def test_kip580_08_with_the_kip_profile_successful_responses_do_not_back_off(seed: int) -> None:
    sending = Sending(seed, "kip")
    sending.add("nowhere", 4000)
    found = gaps(sending.broker.request_times_ms("Metadata"))
    assert len(found) > 25
    assert all(80 <= gap <= 121 for gap in found), found


def test_kip580_09_failed_metadata_waits_for_the_longer_of_two_backoffs(seed: int) -> None:
    """The metadata backoff is 100 to 1000 ms, the reconnect backoff 50 to 1000 ms.

    A failure counts for metadata only if an update is still due when the connection is lost. That depends on another
    draw, so the metadata backoff may lag one step behind.
    """
    sending = Sending(seed, metadata_recovery_strategy="none")
    sending.broker.closes_at_once = True
    sending.add("t", 6000)
    found = gaps(sending.broker.connected_at_ms)
    for gap, shortest, longest in zip(found, (100, 100, 200, 400, 800), STEPS, strict=False):
        assert 0.8 * shortest <= gap <= min(1.2 * longest, 1000) + 2, found


def test_kip580_09_longer_reconnect_backoff_applies(seed: int) -> None:
    sending = Sending(seed, reconnect_backoff_ms="700", metadata_recovery_strategy="none")
    sending.broker.closes_at_once = True
    sending.add("t", 4000)
    found = gaps(sending.broker.connected_at_ms)
    assert all(gap >= 700 for gap in found), found
    assert found[0] <= 701


def test_kip580_15_admin_call_backoff_doubles(seed: int) -> None:
    found = gaps(admin_retries(seed, 6000))
    assert within(found, STEPS[:5]), found


def test_kip580_16_two_clients_are_not_synchronized() -> None:
    one, two = (admin_retries(seed, 10_000) for seed in (1, 2))
    assert all(abs(first - second) > 5 for first, second in zip(one[3:], two[3:], strict=False))


def test_kip580_17_four_attempts_in_the_first_second(seed: int) -> None:
    times = admin_retries(seed, 5000)
    in_time = [at_ms for at_ms in times if at_ms - times[0] < 1000]
    assert len(in_time) in (4, 5), times
