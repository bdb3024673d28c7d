"""Rules about retries: each fires, stays silent on healthy use, and stays silent without evidence."""

from collections.abc import Sequence

import pytest

from sluice.journal_events import ProducedBatch, TopicPartition
from sluice.protocol.errors import ErrorCode
from tests.support.journals import BEGAN_MS, Journal, failed_batch, starts
from tests.support.rule_cases import RuleCase, rule_tests, texts

GROWING = (100, 200, 400, 800, 1000, 1000, 1000)
CONSTANT = (100,) * 8


def failing(api: str, waits_ms: Sequence[float], code: int, *, topic: str = "t", group_id: str = "") -> Journal:
    made = Journal()
    for at_ms in starts(waits_ms):
        one = [TopicPartition(topic=topic, partition=-1)]
        made.request(api, at_ms, at_ms + 1, partitions=one, errors=[code], group_id=group_id)
    return made


def restamped(waits_ms: Sequence[float], contents: Sequence[str]) -> Journal:
    """Return a journal in which batches of these contents succeed, and one fails, with new timestamps at each retry."""
    made = Journal()
    for number, content in enumerate(contents):
        made.batch(number - 10, number - 9.5, batch=stamped(number - 10), records=[content])
    for at_ms in starts(waits_ms):
        made.batch(at_ms, at_ms + 1, batch=stamped(at_ms), records=["x"], errors=[ErrorCode.NOT_LEADER_OR_FOLLOWER])
    return made


def stamped(at_ms: float) -> ProducedBatch:
    of_ms = BEGAN_MS + round(at_ms)
    return ProducedBatch(records=1, bytes=80, compression="none", first_timestamp_ms=of_ms, max_timestamp_ms=of_ms)


def in_a_row(count: int, waits_ms: Sequence[float]) -> Journal:
    """Return a journal of batches that fail once each, with these waits between them."""
    made = Journal()
    for number, at_ms in enumerate(starts(waits_ms)):
        made.batch(at_ms, at_ms + 1, sequence=number, errors=[ErrorCode.NOT_LEADER_OR_FOLLOWER] * (number < count))
    return made


CASES = {
    "retries-without-growing-waits": RuleCase(
        "waits about 100 ms each time before it retries Produce (8 waits)",
        lambda: failed_batch(CONSTANT),
        lambda: failed_batch(GROWING),
        lambda: in_a_row(8, CONSTANT),
    ),
    "retry-storm": RuleCase(
        "250 failed retries of batches, 200 within 0.8 s",
        lambda: failed_batch((3,) * 250),
        lambda: failed_batch(GROWING * 3),
        lambda: in_a_row(250, (3,) * 250),
    ),
    "refused-again": RuleCase(
        "5 CreateTopics requests for topic t failed with INVALID_REPLICATION_FACTOR within 0.404 s",
        lambda: failing("CreateTopics", (100,) * 4, ErrorCode.INVALID_REPLICATION_FACTOR),
        lambda: failing("CreateTopics", (100,) * 4, ErrorCode.TOPIC_ALREADY_EXISTS),
        lambda: failing("CreateTopics", (100,) * 3, ErrorCode.INVALID_REPLICATION_FACTOR),
    ),
    "unauthorized": RuleCase(
        "5 requests were not authorized: Fetch for topic t, within 0.404 s",
        lambda: failing("Fetch", (100,) * 4, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        lambda: failing("Fetch", (100,) * 4, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        lambda: failing("Fetch", (100,) * 3, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ),
}


test_rule, test_all_rules_have_a_case = rule_tests(CASES, "retrying")


CONTENTS = {
    "records differ, so the same one is a retry": (["a", "b"], 1),
    "all records are equal": (["x", "x"], 0),
    "nothing is known about other records": ([], 0),
}


class TestWaits:
    RULE = "retries-without-growing-waits"

    @pytest.mark.parametrize("api", ["Metadata", "FindCoordinator"])
    def test_of_lookups_grow_too(self, api: str) -> None:
        (found,) = texts(self.RULE, failing(api, CONSTANT, ErrorCode.COORDINATOR_NOT_AVAILABLE))
        assert found == f"waits about 100 ms each time before it retries {api} (8 waits)"

    @pytest.mark.parametrize("api", ["JoinGroup", "ListOffsets", "Fetch", "OffsetCommit"])
    def test_of_others_may_be_constant(self, api: str) -> None:
        assert texts(self.RULE, failing(api, CONSTANT, ErrorCode.COORDINATOR_NOT_AVAILABLE)) == []

    def test_of_a_second_do_no_harm(self, journal: Journal) -> None:
        journal.request("Metadata", -60_000, -59_999)
        for at_ms in starts((1000,) * 8):
            journal.batch(at_ms, at_ms + 1, sequence=0, errors=[ErrorCode.NOT_LEADER_OR_FOLLOWER])
        assert texts(self.RULE, journal) == []

    def test_at_the_maximum_are_no_constant_ones_if_the_first_may_be_missing(self) -> None:
        assert texts(self.RULE, failed_batch((700,) * 8)) == []

    def test_with_jitter_are_constant(self, journal: Journal) -> None:
        for sequence, waits in enumerate(((80, 120, 95, 88, 117), (104, 83, 110, 92, 101), (118, 97, 85, 103, 90))):
            for at_ms in starts(waits, from_ms=10_000 * sequence):
                journal.batch(at_ms, at_ms + 1, sequence=sequence, errors=[ErrorCode.NOT_LEADER_OR_FOLLOWER])
        (found,) = texts(self.RULE, journal)
        assert found.endswith("before it retries Produce (15 waits)")

    def test_for_another_broker_do_not_count(self, journal: Journal) -> None:
        for number, at_ms in enumerate(starts(CONSTANT)):
            journal.batch(at_ms, at_ms + 1, sequence=0, errors=[ErrorCode.NOT_LEADER_OR_FOLLOWER], broker=number % 2)
        assert texts(self.RULE, journal) == []

    def test_in_two_streaks_do_not_make_one(self) -> None:
        assert texts(self.RULE, failed_batch((100, 200, 30_000, 100, 200, 30_000, 100, 200))) == []

    @pytest.mark.parametrize(("contents", "count"), CONTENTS.values(), ids=CONTENTS)
    def test_of_batches_with_new_timestamps_are_recognized_by_content(self, contents: list[str], count: int) -> None:
        assert len(texts(self.RULE, restamped(CONSTANT, contents))) == count
        assert len(texts("retry-storm", restamped((3,) * 250, contents))) == count
