"""Rules about metadata: each fires, stays silent on healthy use, and stays silent without evidence."""

from sluice.journal_events import TopicPartition
from sluice.protocol.errors import ErrorCode
from tests.support.journals import Journal
from tests.support.rule_cases import RuleCase, rule_tests, texts


def requests(count: int, step_ms: float, *, connections: int = 1, errors: tuple[int, ...] = ()) -> Journal:
    """Return a journal of Metadata requests for a topic, on these connections in turn."""
    made = Journal()
    for number in range(count):
        made.request(
            "Metadata",
            number * step_ms,
            number * step_ms + 1,
            connection=1 + number % connections,
            partitions=[TopicPartition(topic="t", partition=-1)],
            errors=errors,
        )
    return made


def appears(after_ms: float, *, allowed: bool = True, created: bool = False) -> Journal:
    """Return a journal in which a topic is unknown, and known this long after that."""
    made = Journal()
    one = [TopicPartition(topic="t", partition=-1)]
    sent = {"all_topics": False, "allow_auto_topic_creation": allowed}
    if created:
        made.beside(client_id="admin").request("CreateTopics", after_ms / 2, after_ms / 2 + 1, partitions=one)
    made.request("Metadata", 0, 1, partitions=one, sent=sent, errors=UNKNOWN)
    made.request("Metadata", 1 + after_ms, 2 + after_ms, partitions=one, sent=sent, connection=2)
    return made


UNKNOWN = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,)

CASES = {
    "metadata-storm": RuleCase(
        "150 Metadata requests, of the repeated ones on a connection 100 within 0.99 s",
        lambda: requests(150, 10),
        lambda: requests(150, 100),
        lambda: requests(150, 10, connections=75),
    ),
    "unknown-topic": RuleCase(
        "10 requests for topic t failed with UNKNOWN_TOPIC_OR_PARTITION within 0.9 s",
        lambda: requests(10, 100, errors=UNKNOWN),
        lambda: requests(10, 100),
        lambda: requests(9, 100, errors=UNKNOWN),
    ),
    "auto-created-topic": RuleCase(
        "the topic was unknown to a Metadata request that allows auto creation, and existed shortly after that",
        lambda: appears(100),
        lambda: appears(100, created=True),
        lambda: appears(7000),
    ),
}


test_rule, test_all_rules_have_a_case = rule_tests(CASES, "metadata")


def test_looking_whether_a_topic_exists_is_no_use_of_it(journal: Journal) -> None:
    for number in range(20):
        one = [TopicPartition(topic="t", partition=-1)]
        journal.request("DescribeConfigs", number * 100, number * 100 + 1, partitions=one, errors=UNKNOWN)
    assert texts("unknown-topic", journal) == []


def test_a_client_that_allows_no_auto_creation_did_not_create_the_topic() -> None:
    assert texts("auto-created-topic", appears(100, allowed=False)) == []


def test_a_fleet_that_starts_before_its_topic_exists_does_not_insist(journal: Journal) -> None:
    for number in range(50):
        client = journal.beside(client_id="app", host=f"10.0.1.{number}")
        for at_ms in (number, number + 100):
            one = [TopicPartition(topic="t", partition=-1)]
            client.request("Metadata", at_ms, at_ms + 1, partitions=one, errors=UNKNOWN)
    assert texts("unknown-topic", journal) == []
