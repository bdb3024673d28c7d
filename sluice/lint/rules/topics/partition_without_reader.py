"""Partitions with records that no consumer of the topic reads."""

from collections.abc import Iterator

from sluice.lint.facts.topics import TopicFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# A member of a group has its partitions, and fetches them, within a few seconds.
_READING_NS = 10_000_000_000
_LISTED = 16


def _check(facts: TopicFacts) -> Iterator[Evidence]:
    if facts.is_unlisted or not facts.read:
        return
    from_ns, to_ns = min(first for first, _ in facts.read.values()), max(last for _, last in facts.read.values())
    unread = sorted(
        partition
        for partition, produced in facts.produced.items()
        if partition not in facts.read and produced.span[0] < to_ns and produced.span[1] > from_ns
    )
    if unread and to_ns - from_ns >= _READING_NS:
        records = sum(facts.produced[each].records for each in unread)
        listed = ", ".join(map(str, unread[:_LISTED]))
        yield Evidence(
            f"partitions without a reader: {listed}; records produced to them while {len(facts.read):,} others were "
            f"read: {records:,}"
        )


RULE = Rule(
    id="partition-without-reader",
    scope=Scope.TOPIC,
    severity=Severity.WARNING,
    title="Partitions without a reader",
    why="Other partitions of the topic are read, so these look forgotten: by an assignment by hand, or by a "
    "consumer that does not notice new partitions.",
    citation=Citation(
        where="KafkaConsumer, Manual Partition Assignment",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html",
        words="To use this mode, instead of subscribing to the topic using subscribe, you just call "
        "assign(Collection) with the full list of partitions that you want to consume.",
    ),
    remedy=Remedy(
        java="subscribe() instead of assign(), or all partitions of partitionsFor() in assign()",
        librdkafka="subscribe() instead of assign()",
        aiokafka="subscribe() instead of assign()",
        franz_go="kgo.ConsumeTopics instead of kgo.ConsumePartitions",
        kafkajs="",
    ),
    silent="If the journal left partitions off, the topic was read for less than 10 s, or the partition was "
    "produced to only before or after that.",
    check=_check,
)
