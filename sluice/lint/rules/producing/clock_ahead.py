"""Producers whose clock is ahead."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_LEAST = 5  # a test may choose the timestamp of a single record


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    producing = facts.producing
    ahead, refused = producing.ahead_ms, producing.bad_timestamps
    if producing.ahead_records >= _LEAST or refused >= _LEAST:
        words = f", {refused:,} were refused with INVALID_TIMESTAMP" if refused else ""
        yield Evidence(
            f"the timestamps of {producing.ahead_records:,} records in {ahead.count:,} batches are up to "
            f"{ahead.highest / 1e3:,.0f} s ahead of the broker's clock{words}",
            producing.examples_of("ahead"),
        )


RULE = Rule(
    id="clock-ahead",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Record timestamps in the future",
    why="Segments with such records are not deleted in time, lookups by time miss records, and the broker refuses "
    "records that are an hour ahead (message.timestamp.after.max.ms). Usually the clock of the producer is wrong, or "
    "the application passes seconds, microseconds or local time.",
    citation=Citation(
        where="Topic Configs, message.timestamp.after.max.ms",
        url="https://kafka.apache.org/documentation/#topicconfigs_message.timestamp.after.max.ms",
        words="If message.timestamp.type=CreateTime, the message will be rejected if the difference in timestamps "
        "exceeds this specified threshold.",
    ),
    remedy=Remedy(
        java="synchronize the clock; new ProducerRecord(...) without timestamp",
        librdkafka="synchronize the clock; produce without timestamp",
        aiokafka="synchronize the clock; send() without timestamp_ms",
        franz_go="synchronize the clock; kgo.Record without Timestamp",
        kafkajs="synchronize the clock; messages without timestamp",
    ),
    silent="If timestamps are less than 10 s ahead, or in the past: they may be those of the events.",
    check=_check,
)
