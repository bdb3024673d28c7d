"""Topics with most data in one partition."""

from collections.abc import Iterator

from sluice.lint.facts.topics import TopicFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# With fewer, chance decides where they go: a producer without keys fills a batch for one partition after the other.
_LEAST_BATCHES, _LEAST_BYTES = 100, 1024 * 1024
# Four times its share, or 80 % with few partitions.
_TIMES, _MOST = 4, 0.8


def _check(facts: TopicFacts) -> Iterator[Evidence]:
    produced = facts.produced
    partitions = len(produced.keys() | facts.read.keys())
    total = sum(each.bytes for each in produced.values())
    batches = sum(each.batches for each in produced.values())
    if partitions < 2 or batches < _LEAST_BATCHES or total < _LEAST_BYTES:
        return
    hottest = max(produced, key=lambda partition: produced[partition].bytes)
    share = produced[hottest].bytes / total
    if share >= min(_MOST, _TIMES / partitions):
        yield Evidence(
            f"partition {hottest} has {share:.0%} of the {total / 1e6:,.1f} MB produced to {partitions:,} partitions"
        )


RULE = Rule(
    id="hot-partition",
    scope=Scope.TOPIC,
    severity=Severity.WARNING,
    title="Topics with most data in one partition",
    why="One broker stores it, and one consumer of a group reads it, while the others have little to do. Usually many "
    "records have the same key, or an application chooses the partition.",
    citation=Citation(
        where="Introduction",
        url="https://kafka.apache.org/documentation/#intro_concepts_and_terms",
        words="Events with the same event key (e.g., a customer or vehicle ID) are written to the same partition",
    ),
    remedy=Remedy(
        java="keys with more distinct values, or none; a partitioner.class that distributes a frequent key",
        librdkafka="keys with more distinct values, or none; the partitioner property",
        aiokafka="keys with more distinct values, or none; partitioner",
        franz_go="keys with more distinct values, or none; kgo.RecordPartitioner",
        kafkajs="keys with more distinct values, or none; createPartitioner",
    ),
    silent="Below 100 batches or 1 MiB, or if only one partition is seen.",
    check=_check,
)
