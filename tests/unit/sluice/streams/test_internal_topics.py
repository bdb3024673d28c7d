"""Internal topics of an application: names, partition counts, and creation in rounds."""

import pytest

from sluice.client import errors
from sluice.client.errors import KafkaException, TimeoutException
from sluice.streams.errors import StreamsException
from sluice.streams.internal_topics import InternalTopicManager, repartition_counts
from sluice.streams.topology import Topology
from tests.support.streaming import count, now_ms, split, word_count
from tests.support.streaming_fakes import FakeAdmin, clock

REPARTITION, CHANGELOG = "app-words-repartition", "app-counts-changelog"


async def prepared(admin: FakeAdmin, max_poll_interval_ms: int = 20_000) -> dict[str, int]:
    manager = InternalTopicManager(
        admin,  # type: ignore[arg-type]  # a fake
        clock(),
        replication_factor=3,
        retry_backoff_ms=100,
        max_poll_interval_ms=max_poll_interval_ms,
        topic_configs={"segment.bytes": "1000"},
    )
    return await manager.prepare(word_count().build("app"))


async def test_missing_topics_are_created() -> None:
    admin = FakeAdmin()
    admin.topics = {"lines": 4}
    assert await prepared(admin) == {"lines": 4, REPARTITION: 4}
    assert admin.calls == ["describe lines", f"describe {CHANGELOG} {REPARTITION}", f"create {CHANGELOG} {REPARTITION}"]
    changelog, repartition = admin.made
    assert (changelog.num_partitions, changelog.replication_factor) == (4, 3)
    assert (changelog.configs["cleanup.policy"], changelog.configs["segment.bytes"]) == ("compact", "1000")
    assert (repartition.configs["cleanup.policy"], repartition.configs["retention.ms"]) == ("delete", "-1")


async def test_existing_topics_are_unchanged() -> None:
    admin = FakeAdmin()
    admin.topics = {"lines": 4, REPARTITION: 4, CHANGELOG: 4}
    await prepared(admin)
    assert admin.made == []


PASSES = {
    "no leader yet": (f"describe {CHANGELOG}", errors.LeaderNotAvailableException("not yet")),
    "describing timed out": (f"describe {CHANGELOG}", TimeoutException("late")),
    "being deleted": (f"create {CHANGELOG}", errors.TopicExistsException("still")),
    "creation timed out": (f"create {CHANGELOG}", TimeoutException("late")),
    "no leader of a source topic": ("describe lines", errors.LeaderNotAvailableException("not yet")),
}


@pytest.mark.parametrize(("call", "error"), PASSES.values(), ids=PASSES)
async def test_retriable_error_is_retried_after_a_constant_backoff(call: str, error: KafkaException) -> None:
    admin = FakeAdmin()
    admin.topics = {"lines": 4}
    admin.call_errors = {call: [error] * 3}
    began_ms = now_ms()
    await prepared(admin)
    assert now_ms() - began_ms == 300
    assert admin.topics.keys() == {"lines", REPARTITION, CHANGELOG}


@pytest.mark.parametrize("call", [f"describe {CHANGELOG} {REPARTITION}", f"create {CHANGELOG} {REPARTITION}"])
async def test_timed_out_call_is_retried(call: str) -> None:
    admin = FakeAdmin()
    admin.topics = {"lines": 4}
    admin.fail(call, TimeoutException("late"), TimeoutException("late"))
    await prepared(admin)
    assert admin.calls.count(call) == 3


FATAL = {
    "no source": ({}, {}, "source topic lines does not exist"),
    "other partitions": ({CHANGELOG: 3}, {}, f"topic {CHANGELOG}: expected 4 partitions, got 3"),
    "not authorized to describe": (
        {},
        {f"describe {CHANGELOG}": errors.TopicAuthorizationException("no")},
        f"topic {CHANGELOG} cannot be described: no",
    ),
    "not authorized to create": (
        {},
        {f"create {CHANGELOG}": errors.TopicAuthorizationException("no")},
        f"topic {CHANGELOG} cannot be created: no",
    ),
}


@pytest.mark.parametrize(("topics", "errors", "line"), FATAL.values(), ids=FATAL)
async def test_fatal_error_ends_the_preparation(
    topics: dict[str, int], errors: dict[str, KafkaException], line: str
) -> None:
    admin = FakeAdmin()
    admin.topics = ({} if line.startswith("source") else {"lines": 4}) | topics
    admin.call_errors = {call: [error] for call, error in errors.items()}
    with pytest.raises(StreamsException, match=line):
        await prepared(admin)


async def test_failed_call_ends_the_preparation() -> None:
    admin = FakeAdmin()
    admin.fail("describe lines", errors.ClusterAuthorizationException("no"))
    with pytest.raises(StreamsException, match="describing lines failed: no"):
        await prepared(admin)


def test_repartition_topic_has_the_partition_count_of_its_largest_source() -> None:
    topology = Topology()
    first = topology.source("small", "large").process(split).repartition("first")
    first.process(count).repartition("second").sink("out")
    parts = topology.build("app").subtopologies
    assert repartition_counts(parts, {"small": 2, "large": 7}) == {
        "app-first-repartition": 7,
        "app-second-repartition": 7,
    }
