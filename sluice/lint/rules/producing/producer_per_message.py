"""Applications that create a producer for a few records."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_MOST_REQUESTS = 2  # Produce requests per producer id


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    inits, requests = facts.producing.inits, facts.producing.requests
    if inits.fastest_ns and requests <= _MOST_REQUESTS * inits.count:
        yield Evidence(
            f"{inits.count:,} InitProducerId requests for {requests:,} Produce requests, {inits.in_words}",
            inits.examples,
        )


RULE = Rule(
    id="producer-per-message",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Applications that create a producer for one or two requests",
    why="Each producer connects, gets metadata and a new producer id before it can send. Brokers keep the state of "
    "each producer id for a day (producer.id.expiration.ms), and producers cannot batch.",
    citation=Citation(
        where="KafkaProducer",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/producer/KafkaProducer.html",
        words="The producer is thread safe and sharing a single producer instance across threads will generally be "
        "faster than having multiple instances.",
    ),
    remedy=Remedy(
        java="one KafkaProducer per application",
        librdkafka="one producer per application",
        aiokafka="one AIOKafkaProducer per application",
        franz_go="one kgo.Client per application",
        kafkajs="one kafka.producer() per application, connected once",
    ),
    silent="Below 20 producer ids per minute. Producers without idempotence have no producer ids: then "
    "connection-per-message applies.",
    check=_check,
)
