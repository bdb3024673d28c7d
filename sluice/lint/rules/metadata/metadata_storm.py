"""Clients that request metadata again and again."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    repeated = facts.connections.metadata
    if repeated.fastest_ns:
        total = facts.traffic.apis["Metadata"]
        yield Evidence(
            f"{total:,} Metadata requests, of the repeated ones on a connection {repeated.in_words}", repeated.examples
        )


RULE = Rule(
    id="metadata-storm",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Clients that request metadata again and again",
    why="A response for many topics is large and expensive for the broker. A healthy client requests metadata every "
    "few minutes, and after an error with a backoff.",
    citation=Citation(
        where="Producer Configs, metadata.max.age.ms",
        url="https://kafka.apache.org/documentation/#producerconfigs_metadata.max.age.ms",
        words="The period of time in milliseconds after which we force a refresh of metadata even if we haven't seen "
        "any partition leadership changes to proactively discover any new brokers or partitions.",
    ),
    remedy=Remedy(
        java="metadata.max.age.ms=300000, retry.backoff.ms=100, the defaults; partitionsFor() not per record",
        librdkafka="topic.metadata.refresh.interval.ms=300000, the default; list_topics() not per message",
        aiokafka="metadata_max_age_ms=300000, retry_backoff_ms=100, the defaults",
        franz_go="kgo.MetadataMaxAge(5*time.Minute), kgo.MetadataMinAge(5*time.Second)",
        kafkajs="metadataMaxAge: 300000, the default",
    ),
    silent="Below 20 requests per second, without the first two of each connection.",
    check=_check,
)
