"""Consumers that read more slowly than the topic grows."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# A rebalance or a restart also stops a consumer, but a healthy one catches up afterwards.
_SECONDS = 30.0
_RECORDS = 1000
_MOST_EXAMPLES = 5


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    growths = [(key, each.growth) for key, each in facts.fetching.positions.items()]
    found = [
        (key, growth)
        for key, growth in growths
        if growth.seconds >= _SECONDS
        and growth.to_lag - growth.from_lag >= _RECORDS
        and growth.to_lag >= 2 * growth.from_lag
    ]
    for (topic, partition), growth in found[:_MOST_EXAMPLES]:
        yield Evidence(
            f"the lag of {topic}-{partition} grew from {growth.from_lag:,} to {growth.to_lag:,} records in "
            f"{growth.seconds:.0f} s"
        )


RULE = Rule(
    id="lag-grows",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Lag that grows without a break",
    why="The consumer does not keep up. If this continues, retention deletes records before they are read.",
    citation=Citation(
        where="Monitoring, Others",
        url="https://kafka.apache.org/documentation/#monitoring",
        words="For a consumer to keep up, max lag needs to be less than a threshold and min fetch rate needs to be "
        "larger than 0.",
    ),
    remedy=Remedy(
        java="more members and partitions, or max.poll.records and fetch.min.bytes for larger batches",
        librdkafka="more members and partitions, or fetch.min.bytes and consume(num_messages) for larger batches",
        aiokafka="more members and partitions, or getmany(max_records=...) for larger batches",
        franz_go="more members and partitions, or PollRecords for larger batches",
        kafkajs="partitionsConsumedConcurrently, or eachBatch; more members and partitions",
    ),
    silent="If the lag grew for less than 30 s, or by less than 1,000 records; while records that the client has"
    " fetched wait in its buffer.",
    check=_check,
)
