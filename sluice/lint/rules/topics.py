"""Rules about topics: how their producers and consumers fit together."""

from collections.abc import Iterator

from sluice.lint.facts.topics import TopicFacts
from sluice.lint.rule import Evidence, Remedy, Severity, cited, properties, rule

# Three times the default of auto.commit.interval.ms.
_MEMBER_NS = 15_000_000_000


@rule(
    Severity.WARNING,
    title="A group that commits no offsets",
    why="After a restart or a rebalance, its members start where auto.offset.reset says: they read everything again, "
    "or skip records. Ignore this if the offsets are stored elsewhere.",
    citation=cited(
        "KafkaConsumer, Offsets and Consumer Position",
        "The committed position is the last offset that has been stored securely. Should the process fail and restart, "
        "this is the offset that the consumer will recover to.",
    ),
    remedy=Remedy(
        java="enable.auto.commit=true, or commitSync()",
        librdkafka="enable.auto.commit=true, or commit()",
        aiokafka="enable_auto_commit=True, or commit()",
        franz_go="no kgo.DisableAutoCommit(), or CommitUncommittedOffsets",
        kafkajs="autoCommit: true, or commitOffsets",
    ),
    silent="If the members were in the group for less than 15 s, or their client joined several groups.",
)
def group_without_commits(facts: TopicFacts) -> Iterator[Evidence]:
    for group_id in sorted(facts.groups_without_commits):
        first_ns, last_ns = facts.reading_groups.get(group_id, (0, 0))
        if last_ns - first_ns >= _MEMBER_NS:
            yield Evidence(
                f"group {group_id} committed no offset in {(last_ns - first_ns) / 1e9:.0f} s, while its members read "
                f"the topic"
            )


# A member of a group has its partitions, and fetches them, within a few seconds.
_READING_NS = 10_000_000_000
_LISTED = 16


@rule(
    Severity.WARNING,
    title="Partitions without a reader",
    why="Other partitions of the topic are read, so these look forgotten: by an assignment by hand, or by a consumer "
    "that does not notice new partitions.",
    citation=cited(
        "KafkaConsumer, Manual Partition Assignment",
        "To use this mode, instead of subscribing to the topic using subscribe, you just call assign(Collection) with "
        "the full list of partitions that you want to consume.",
    ),
    remedy=Remedy(
        java="subscribe() instead of assign(), or all partitions of partitionsFor() in assign()",
        librdkafka="subscribe() instead of assign()",
        aiokafka="subscribe() instead of assign()",
        franz_go="kgo.ConsumeTopics instead of kgo.ConsumePartitions",
    ),
    silent="If the journal left partitions off, the topic was read for less than 10 s, or the partition was produced "
    "to only before or after that.",
)
def partition_without_reader(facts: TopicFacts) -> Iterator[Evidence]:
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


@rule(
    Severity.WARNING,
    title="Readers with read_uncommitted of a topic with transactions",
    why="Such a reader also receives records of transactions that are aborted, so the producers' transactions do not "
    "protect it. It is the default of most clients.",
    citation=cited(
        "KafkaProducer",
        "Finally, in order for transactional guarantees to be realized from end-to-end, the consumers must be "
        "configured to read only committed messages as well.",
    ),
    remedy=properties(
        "isolation.level=read_committed",
        aiokafka="isolation_level='read_committed'",
        franz_go="kgo.FetchIsolationLevel(kgo.ReadCommitted())",
        kafkajs="readUncommitted: false",
    ),
    silent="If no transactional batch was produced to the topic in the journal.",
)
def read_uncommitted(facts: TopicFacts) -> Iterator[Evidence]:
    transactional = sum(each.transactional for each in facts.produced.values())
    if transactional and facts.uncommitted_readers:
        readers = ", ".join(str(each) for each in facts.uncommitted_readers)
        yield Evidence(
            f"{facts.reads_uncommitted:,} responses with records to readers with read_uncommitted ({readers}); "
            f"{transactional:,} transactional batches were produced"
        )
