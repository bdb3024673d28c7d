"""The topics in a consumer's metadata."""

import re

import pytest

from sluice.client.backoff import StaticBackoff
from sluice.client.consumer.metadata import ConsumerMetadata
from sluice.client.consumer.offset_reset import EARLIEST
from sluice.client.consumer.subscription_state import SubscriptionState
from sluice.client.metadata.cluster import TopicPartition


def made(*, includes_internal: bool = False, creates_topics: bool = True) -> tuple[SubscriptionState, ConsumerMetadata]:
    subscriptions = SubscriptionState(EARLIEST)
    metadata = ConsumerMetadata(
        StaticBackoff(100),
        300_000,
        subscriptions,
        equivalent_backoff=None,
        creates_topics=creates_topics,
        includes_internal=includes_internal,
    )
    metadata.bootstrap(["a:9092"])
    return subscriptions, metadata


def requested(metadata: ConsumerMetadata) -> list[str | None] | None:
    topics = metadata.request_for_all().topics
    return None if topics is None else [topic.name for topic in topics]


def test_requested_topics_are_subscribed_assigned_or_queried() -> None:
    subscriptions, metadata = made()
    assert requested(metadata) == []
    subscriptions.subscribe(["u", "t"])
    assert requested(metadata) == ["t", "u"]
    metadata.add_transient(["v"])
    assert requested(metadata) == ["t", "u", "v"]
    subscriptions.unsubscribe()
    subscriptions.assign([TopicPartition("w", 3)])
    assert requested(metadata) == ["v", "w"]


def test_group_leader_requests_all_topics_of_the_group() -> None:
    subscriptions, metadata = made()
    subscriptions.subscribe(["t"])
    assert subscriptions.group_subscribes(["t", "u"])
    assert requested(metadata) == ["t", "u"]
    assert metadata.retains_topic("u", False, 0.0)


def test_subscribing_or_querying_requests_metadata_at_once() -> None:
    subscriptions, metadata = made()
    metadata.failed_update(0.0)
    assert metadata.time_to_next_update_ms(0.0) > 0
    subscriptions.subscribe(["t"])
    assert metadata.time_to_next_update_ms(0.0) == 0
    metadata.failed_update(0.0)
    metadata.add_transient(["u"])
    assert metadata.time_to_next_update_ms(0.0) == 0


def test_topic_queried_several_times_is_kept_until_the_last_query_ends() -> None:
    _, metadata = made()
    metadata.add_transient(["t"])
    metadata.add_transient(["t", "u"])
    metadata.remove_transient(["t"])
    assert metadata.retains_topic("t", False, 0.0)
    metadata.remove_transient(["t", "u"])
    assert not metadata.retains_topic("t", False, 0.0)
    assert requested(metadata) == []


PATTERNS = {
    "a full match": ("orders-1", False, False, True),
    "a partial match is excluded": ("my-orders-1", False, False, False),
    "internal topics are excluded": ("orders-offsets", True, False, False),
    "internal topics are included with exclude.internal.topics=false": ("orders-offsets", True, True, True),
}


@pytest.mark.parametrize(("topic", "is_internal", "includes_internal", "kept"), PATTERNS.values(), ids=PATTERNS)
def test_pattern_subscription_requests_all_topics_and_keeps_matches(
    topic: str, is_internal: bool, includes_internal: bool, kept: bool
) -> None:
    subscriptions, metadata = made(includes_internal=includes_internal)
    subscriptions.subscribe_pattern(re.compile("orders-.*"))
    assert requested(metadata) is None
    assert metadata.retains_topic(topic, is_internal, 0.0) is kept


@pytest.mark.parametrize("creates", [True, False])
def test_topics_are_auto_created_only_if_configured(creates: bool) -> None:
    subscriptions, metadata = made(creates_topics=creates)
    subscriptions.subscribe(["t"])
    assert metadata.request_for_all().allow_auto_topic_creation is creates
