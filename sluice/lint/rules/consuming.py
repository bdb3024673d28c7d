"""Rules about consumers: what they fetch and commit."""

import re
from collections import defaultdict
from collections.abc import Iterator

from sluice.lint.facts.subjects import ClientFacts
from sluice.lint.rule import Evidence, Remedy, Severity, cited, properties, rule


@rule(
    Severity.ERROR,
    title="Commits ahead of what was fetched",
    why="After a restart or a rebalance, the group continues at the committed offset. The records before it are never "
    "read.",
    citation=cited(
        "KafkaConsumer, Manual Offset Control",
        "If you fail to do either of these, it is possible for the committed offset to get ahead of the consumed "
        "position, which results in missing records.",
    ),
    remedy=Remedy(
        java="commitSync(Map.of(partition, new OffsetAndMetadata(record.offset() + 1)))",
        librdkafka="commit(message=message), or store_offsets(message=message)",
        aiokafka="commit({partition: record.offset + 1})",
        franz_go="CommitRecords(ctx, records...)",
        kafkajs="commitOffsets([{topic, partition, offset: (Number(message.offset) + 1).toString()}])",
    ),
    silent="If the client fetches fewer than two times after the commit, or commits for several groups.",
)
def commit_ahead(facts: ClientFacts) -> Iterator[Evidence]:
    for (group_id, topic, partition), ahead in facts.committing.ahead.items():
        yield Evidence(
            f"group {group_id} committed offset {ahead.committed:,} of {topic}-{partition}, but two fetches later the "
            f"client had not fetched beyond {ahead.fetched:,}",
            facts.committing.ahead_examples,
        )


@rule(
    Severity.WARNING,
    title="Commits that go back",
    why="A commit has overtaken a newer one, as happens when several threads or tasks commit, or when failed commits "
    "are retried. After a restart, records that were processed are read again.",
    citation=cited(
        "KafkaConsumer, Manual Offset Control",
        "The committed offset should always be the offset of the next message that your application will read.",
    ),
    remedy=Remedy(
        java="commitSync() from the polling thread only; do not retry in the callback of commitAsync()",
        librdkafka="store_offsets in the order of the offsets, with enable.auto.offset.store=false",
        aiokafka="commit() from one task only, with the lowest offset that is not processed",
        franz_go="kgo.AutoCommitMarks() with MarkCommitRecords, which never go back",
        kafkajs="resolveOffset in the order of the offsets, with eachBatchAutoResolve: false",
    ),
    silent="If the client fetched from the lower offset in between (seek), commits for several groups, or does not "
    "fetch the partition.",
)
def commit_goes_back(facts: ClientFacts) -> Iterator[Evidence]:
    committing = facts.committing
    if committing.backward:
        yield Evidence(
            f"commits of an offset below the one before, which the client did not fetch again: {committing.backward:,}",
            committing.backward_examples,
        )


_MOST = 0.9


@rule(
    Severity.WARNING,
    title="A commit for each record",
    why="Each commit is a write to the replicated topic __consumer_offsets, and a synchronous one stops the consumer "
    "for a round trip. The rate of commits, not that of records, becomes the limit.",
    citation=cited(
        "KafkaConsumer, commitSync",
        "This is a synchronous commit and will block until either the commit succeeds, an unrecoverable error is "
        "encountered (in which case it is thrown to the caller), or the passed timeout expires.",
        "https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/KafkaConsumer.html#commitSync()",
    ),
    remedy=Remedy(
        java="commitSync() once per poll(), or enable.auto.commit=true with auto.commit.interval.ms=5000",
        librdkafka="enable.auto.commit=true with auto.commit.interval.ms=5000, and enable.auto.offset.store=false with "
        "a call of store_offsets per record",
        aiokafka="commit() once per getmany(), or enable_auto_commit=True with auto_commit_interval_ms=5000",
        franz_go="kgo.AutoCommitInterval(5 * time.Second) with kgo.AutoCommitMarks() and MarkCommitRecords per record",
        kafkajs="autoCommitInterval: 5000 or autoCommitThreshold: 100",
    ),
    silent="If fewer than 50 such commits come in 10 s: at a low rate, a commit per record is a choice.",
)
def commit_per_record(facts: ClientFacts) -> Iterator[Evidence]:
    single = facts.committing.single
    commits = single.count + facts.committing.several
    if single.fastest_ns and single.count >= _MOST * commits:
        yield Evidence(
            f"{single.count:,} of {commits:,} commits are for one record, {single.in_words}", single.examples
        )


@rule(
    Severity.WARNING,
    title="Commits that fail because the consumer is no longer a member",
    why="The group has given the partitions to another member while the consumer was processing. That member processes "
    "the same records again.",
    citation=cited(
        "CommitFailedException",
        "In this case, the commit cannot generally be retried because some of the partitions may have already been "
        "assigned to another member in the group.",
        "https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/consumer/CommitFailedException.html",
    ),
    remedy=Remedy(
        java="smaller max.poll.records, or larger max.poll.interval.ms",
        librdkafka="larger max.poll.interval.ms",
        aiokafka="larger max_poll_interval_ms and rebalance_timeout_ms, or smaller max_poll_records",
        franz_go="larger kgo.RebalanceTimeout, or kgo.BlockRebalanceOnPoll()",
        kafkajs="larger sessionTimeout, and heartbeat() while processing",
    ),
    silent="If one commit was of an earlier generation, as it may be in a rebalance; if a fault rule injected the "
    "error.",
)
def commits_rejected(facts: ClientFacts) -> Iterator[Evidence]:
    committing = facts.committing
    if committing.removed or committing.outdated.fastest_ns:
        yield Evidence(
            f"commits that failed with UNKNOWN_MEMBER_ID: {committing.removed:,}, with ILLEGAL_GENERATION: "
            f"{committing.outdated.count:,}",
            committing.rejected_examples,
        )


# Fewer can be one backlog that is read after a restart.
_RESPONSES = 20


@rule(
    Severity.WARNING,
    title="Fetches that a low limit cuts short",
    why="The partition had more records than the limit lets a response contain. The consumer needs a round trip for "
    "each small piece, so it falls behind sooner.",
    citation=cited(
        "Consumer Configs, fetch.min.bytes",
        "Even if the total data available in the broker exceeds fetch.min.bytes, the actual returned size may still be "
        "less than this value due to per-partition limits max.partition.fetch.bytes and max returned limits "
        "fetch.max.bytes.",
    ),
    remedy=properties(
        "max.partition.fetch.bytes=1048576, fetch.max.bytes=52428800",
        franz_go="kgo.FetchMaxPartitionBytes(1 << 20), kgo.FetchMaxBytes(50 << 20)",
        kafkajs="maxBytesPerPartition: 1048576, maxBytes: 10485760",
    ),
    silent="If the limits are the defaults, or higher; if fewer than 20 responses had records.",
)
def fetches_cut(facts: ClientFacts) -> Iterator[Evidence]:
    fetching = facts.fetching
    if fetching.limited >= _RESPONSES and fetching.cut >= _MOST * fetching.limited:
        yield Evidence(
            f"{fetching.cut:,} of {fetching.limited:,} responses left off records that the partition had; the limit is "
            f"{fetching.smallest_limit:,} bytes",
            fetching.cut_examples,
        )


@rule(
    Severity.WARNING,
    title="Empty fetches, one after the other, without a wait",
    why="A fetch that does not wait returns at once when there are no records. The consumer then sends the next one, "
    "so both it and the broker are busy although nothing happens.",
    citation=cited(
        "Consumer Configs, fetch.max.wait.ms",
        "The maximum amount of time the server will block before answering the fetch request there isn't sufficient "
        "data to immediately satisfy the requirement given by fetch.min.bytes.",
    ),
    remedy=Remedy(
        java="fetch.max.wait.ms=500, fetch.min.bytes=1",
        librdkafka="fetch.wait.max.ms=500, fetch.min.bytes=1",
        aiokafka="fetch_max_wait_ms=500, fetch_min_bytes=1",
        franz_go="kgo.FetchMaxWait(5 * time.Second), kgo.FetchMinBytes(1)",
        kafkajs="maxWaitTimeInMs: 5000, minBytes: 1",
    ),
    silent="If the wait is at least 50 ms, or fewer than 100 such fetches come in 10 s.",
)
def fetches_without_wait(facts: ClientFacts) -> Iterator[Evidence]:
    fetching = facts.fetching
    if fetching.unwaiting.fastest_ns:
        yield Evidence(
            f"{fetching.unwaiting.count:,} empty fetches, {fetching.unwaiting.in_words}, with a wait of "
            f"{min(fetching.by('max_wait_ms'))} ms for {min(fetching.by('min_bytes'))} bytes",
            fetching.unwaiting.examples,
        )


# Fewer can be the runs of a developer.
_GROUPS = 5
# A UUID, at least eight hexadecimal digits, or at least five decimal ones.
_GENERATED = re.compile(r"(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{8,}|[0-9]{5,})$")


@rule(
    Severity.INFO,
    title="Group ids with a generated part",
    why="A new group starts where auto.offset.reset says, so it reads everything or misses what came between two runs. "
    "Its committed offsets are kept for days, although no client uses them again. Tests do this on purpose.",
    citation=cited(
        "Broker Configs, offsets.retention.minutes",
        "For subscribed consumers, committed offset of a specific partition will be expired and discarded when 1) this "
        "retention period has elapsed after the consumer group loses all its consumers (i.e. becomes empty)",
    ),
    remedy=Remedy(
        java="a constant group.id; assign() without a group.id if each instance reads everything",
        librdkafka="a constant group.id; assign() with enable.auto.commit=false if each instance reads everything",
        aiokafka="a constant group_id; group_id=None with assign() if each instance reads everything",
        franz_go="a constant kgo.ConsumerGroup; none if each instance reads everything",
        kafkajs="a constant groupId",
    ),
    silent="If the client joined fewer than five such groups.",
)
def group_per_run(facts: ClientFacts) -> Iterator[Evidence]:
    by_prefix: dict[str, list[str]] = defaultdict(list)
    for group_id in facts.joining.groups:
        generated = _GENERATED.search(group_id)
        if generated is not None:
            by_prefix[group_id[: generated.start()]].append(group_id)
    for names in by_prefix.values():
        if len(names) >= _GROUPS:
            yield Evidence(f"{len(names):,} groups with generated names, such as {names[0]} and {names[1]}")


# A rebalance or a restart also stops a consumer, but a healthy one catches up afterwards.
_GROWING_S = 30.0
_RECORDS = 1000
_MOST_EXAMPLES = 5


@rule(
    Severity.WARNING,
    title="Lag that grows without a break",
    why="The consumer does not keep up. If this continues, retention deletes records before they are read.",
    citation=cited(
        "Monitoring, Others",
        "For a consumer to keep up, max lag needs to be less than a threshold and min fetch rate needs to be larger "
        "than 0.",
        "https://kafka.apache.org/documentation/#monitoring",
    ),
    remedy=Remedy(
        java="more members and partitions, or max.poll.records and fetch.min.bytes for larger batches",
        librdkafka="more members and partitions, or fetch.min.bytes and consume(num_messages) for larger batches",
        aiokafka="more members and partitions, or getmany(max_records=...) for larger batches",
        franz_go="more members and partitions, or PollRecords for larger batches",
        kafkajs="partitionsConsumedConcurrently, or eachBatch; more members and partitions",
    ),
    silent="If the lag grew for less than 30 s, or by less than 1,000 records; while records that the client has "
    "fetched wait in its buffer.",
)
def lag_grows(facts: ClientFacts) -> Iterator[Evidence]:
    growths = [(key, each.growth) for key, each in facts.fetching.positions.items()]
    found = [
        (key, growth)
        for key, growth in growths
        if growth.seconds >= _GROWING_S
        and growth.to_lag - growth.from_lag >= _RECORDS
        and growth.to_lag >= 2 * growth.from_lag
    ]
    for (topic, partition), growth in found[:_MOST_EXAMPLES]:
        yield Evidence(
            f"the lag of {topic}-{partition} grew from {growth.from_lag:,} to {growth.to_lag:,} records in "
            f"{growth.seconds:.0f} s"
        )


@rule(
    Severity.WARNING,
    title="Requests for offsets that do not exist",
    why="The consumer was so far behind that retention deleted its next records, or the log was truncated or "
    "recreated. It then continues where auto.offset.reset says, and skips or repeats records.",
    citation=cited(
        "Consumer Configs, auto.offset.reset",
        "What to do when there is no initial offset in Kafka or if the current offset does not exist any more on the "
        "server (e.g. because that data has been deleted)",
    ),
    remedy=Remedy(
        java="auto.offset.reset=none to notice it, or earliest; a longer retention.ms of the topic",
        librdkafka="auto.offset.reset=error to notice it, or earliest; a longer retention.ms of the topic",
        aiokafka="auto_offset_reset='none' to notice it, or 'earliest'; a longer retention.ms of the topic",
        franz_go="kgo.ConsumeResetOffset(kgo.NoResetOffset()) to notice it, or kgo.NewOffset().AtStart(); a longer "
        "retention.ms of the topic",
        kafkajs="fromBeginning: true; a longer retention.ms of the topic",
    ),
    silent="If a fault rule injected the error.",
)
def offset_out_of_range(facts: ClientFacts) -> Iterator[Evidence]:
    fetching = facts.fetching
    if fetching.out_of_range:
        yield Evidence(
            f"requests that failed with OFFSET_OUT_OF_RANGE: {fetching.out_of_range:,}", fetching.out_of_range_examples
        )


# Six times the default of auto.commit.interval.ms.
_COMMIT_S = 30.0
_NS_PER_S = 1e9


@rule(
    Severity.WARNING,
    title="Long times between commits",
    why="After a crash or a rebalance, the next consumer reads all records since the last commit again.",
    citation=cited(
        "KafkaConsumer, Manual Offset Control",
        "In this case the process that took over consumption would consume from last committed offset and would repeat "
        "the insert of the last batch of data.",
    ),
    remedy=properties(
        "auto.commit.interval.ms=5000",
        franz_go="kgo.AutoCommitInterval(5 * time.Second)",
        kafkajs="autoCommitInterval: 5000",
    ),
    silent="If less than 30 s pass, or fewer than 1,000 records are read, between two commits; while a client has "
    "fetched them before the first one.",
)
def rare_commits(facts: ClientFacts) -> Iterator[Evidence]:
    found = [(key, each.longest) for key, each in facts.committing.offsets.items() if each.longest.ns]
    if not found:
        return
    (group_id, topic, partition), longest = max(found, key=lambda each: each[1].ns)
    if longest.ns >= _COMMIT_S * _NS_PER_S:
        yield Evidence(
            f"group {group_id} read {longest.records:,} records of {topic}-{partition} in "
            f"{longest.ns / _NS_PER_S:.0f} s before it committed them"
        )


@rule(
    Severity.INFO,
    title="Many fetches with less than 1 KiB of records",
    why="Each response costs the broker and the consumer a request, whatever its size. If latency allows, waiting for "
    "more bytes saves most of them.",
    citation=cited(
        "Consumer Configs, fetch.min.bytes",
        "Setting this to a larger value will cause the server to wait for larger amounts of data to accumulate which "
        "can improve server throughput a bit at the cost of some additional latency.",
    ),
    remedy=properties("fetch.min.bytes=16384", franz_go="kgo.FetchMinBytes(16 << 10)", kafkajs="minBytes: 16384"),
    silent="If fewer than 1,000 such responses come in 10 s.",
)
def tiny_fetches(facts: ClientFacts) -> Iterator[Evidence]:
    tiny = facts.fetching.tiny
    if tiny.fastest_ns:
        yield Evidence(f"{tiny.count:,} responses with less than 1 KiB of records, {tiny.in_words}", tiny.examples)
