"""Consumers that fetch without a wait, again and again."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    fetching = facts.fetching
    if fetching.unwaiting.fastest_ns:
        yield Evidence(
            f"{fetching.unwaiting.count:,} empty fetches, {fetching.unwaiting.in_words}, with a wait of "
            f"{min(fetching.max_wait_ms)} ms for {min(fetching.min_bytes)} bytes",
            fetching.unwaiting.examples,
        )


RULE = Rule(
    id="fetches-without-wait",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Empty fetches, one after the other, without a wait",
    why="A fetch that does not wait returns at once when there are no records. The consumer then sends the "
    "next one, so both it and the broker are busy although nothing happens.",
    citation=Citation(
        where="Consumer Configs, fetch.max.wait.ms",
        url="https://kafka.apache.org/documentation/#consumerconfigs_fetch.max.wait.ms",
        words="The maximum amount of time the server will block before answering the fetch request there isn't "
        "sufficient data to immediately satisfy the requirement given by fetch.min.bytes.",
    ),
    remedy=Remedy(
        java="fetch.max.wait.ms=500, fetch.min.bytes=1",
        librdkafka="fetch.wait.max.ms=500, fetch.min.bytes=1",
        aiokafka="fetch_max_wait_ms=500, fetch_min_bytes=1",
        franz_go="kgo.FetchMaxWait(5 * time.Second), kgo.FetchMinBytes(1)",
        kafkajs="maxWaitTimeInMs: 5000, minBytes: 1",
    ),
    silent="If the wait is at least 50 ms, or fewer than 100 such fetches come in 10 s.",
    check=_check,
)
