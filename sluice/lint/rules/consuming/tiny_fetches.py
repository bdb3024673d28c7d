"""Consumers that fetch a few records at a high rate."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    tiny = facts.fetching.tiny
    if tiny.fastest_ns:
        yield Evidence(f"{tiny.count:,} responses with less than 1 KiB of records, {tiny.in_words}", tiny.examples)


RULE = Rule(
    id="tiny-fetches",
    scope=Scope.CLIENT,
    severity=Severity.INFO,
    title="Many fetches with less than 1 KiB of records",
    why="Each response costs the broker and the consumer a request, whatever its size. If latency allows, "
    "waiting for more bytes saves most of them.",
    citation=Citation(
        where="Consumer Configs, fetch.min.bytes",
        url="https://kafka.apache.org/documentation/#consumerconfigs_fetch.min.bytes",
        words="Setting this to a larger value will cause the server to wait for larger amounts of data to "
        "accumulate which can improve server throughput a bit at the cost of some additional latency.",
    ),
    remedy=Remedy(
        java="fetch.min.bytes=16384",
        librdkafka="fetch.min.bytes=16384",
        aiokafka="fetch_min_bytes=16384",
        franz_go="kgo.FetchMinBytes(16 << 10)",
        kafkajs="minBytes: 16384",
    ),
    silent="If fewer than 1,000 such responses come in 10 s.",
    check=_check,
)
