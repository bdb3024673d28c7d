"""Which topics a consumer asks for, and keeps."""

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


def asked(metadata: ConsumerMetadata) -> list[str | None] | None:
    topics = metadata.request_for_all().topics
    return None if topics is None else [topic.name for topic in topics]


def test_it_is_what_is_subscribed_to_assigned_and_asked_about() -> None:
    subscriptions, metadata = made()
    assert asked(metadata) == []
    subscriptions.subscribe(["u", "t"])
    assert asked(metadata) == ["t", "u"]
    metadata.add_transient(["v"])
    assert asked(metadata) == ["t", "u", "v"]
    subscriptions.unsubscribe()
    subscriptions.assign([TopicPartition("w", 3)])
    assert asked(metadata) == ["v", "w"]


def test_a_leader_asks_for_what_its_group_reads() -> None:
    subscriptions, metadata = made()
    subscriptions.subscribe(["t"])
    assert subscriptions.group_subscribes(["t", "u"])
    assert asked(metadata) == ["t", "u"]
    assert metadata.retains_topic("u", False, 0.0)


def test_who_subscribes_or_asks_about_a_topic_need_not_wait() -> None:
    subscriptions, metadata = made()
    metadata.failed_update(0.0)
    assert metadata.time_to_next_update_ms(0.0) > 0
    subscriptions.subscribe(["t"])
    assert metadata.time_to_next_update_ms(0.0) == 0
    metadata.failed_update(0.0)
    metadata.add_transient(["u"])
    assert metadata.time_to_next_update_ms(0.0) == 0


def test_what_several_ask_about_is_kept_until_the_last_has_its_answer() -> None:
    _, metadata = made()
    metadata.add_transient(["t"])
    metadata.add_transient(["t", "u"])
    metadata.remove_transient(["t"])
    assert metadata.retains_topic("t", False, 0.0)
    metadata.remove_transient(["t", "u"])
    assert not metadata.retains_topic("t", False, 0.0)
    assert asked(metadata) == []


@pytest.mark.parametrize(
    ("topic", "is_internal", "includes_internal", "kept"),
    [
        pytest.param("orders-1", False, False, True, id="one that matches"),
        pytest.param("my-orders-1", False, False, False, id="not one that matches in part"),
        pytest.param("orders-offsets", True, False, False, id="not an internal one"),
        pytest.param("orders-offsets", True, True, True, id="an internal one where exclude.internal.topics is false"),
    ],
)
def test_for_a_pattern_all_are_asked_for_and_those_that_match_are_kept(
    topic: str, is_internal: bool, includes_internal: bool, kept: bool
) -> None:
    subscriptions, metadata = made(includes_internal=includes_internal)
    subscriptions.subscribe_pattern(re.compile("orders-.*"))
    assert asked(metadata) is None
    assert metadata.retains_topic(topic, is_internal, 0.0) is kept


@pytest.mark.parametrize("creates", [True, False])
def test_topics_are_made_by_asking_if_that_is_configured(creates: bool) -> None:
    subscriptions, metadata = made(creates_topics=creates)
    subscriptions.subscribe(["t"])
    assert metadata.request_for_all().allow_auto_topic_creation is creates
