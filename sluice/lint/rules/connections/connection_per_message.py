"""Applications that connect for each message."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_MOST = 0.5  # a client that connects anew may bootstrap over a second connection, which has no further request


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    connections = facts.connections
    short = connections.short
    if short.fastest_ns and short.count >= _MOST * connections.closed:
        yield Evidence(
            f"{short.count:,} of {connections.count:,} connections were closed by the client within 10 s, with at most "
            f"one request after the handshake and metadata, {short.in_words}",
            short.examples,
        )


RULE = Rule(
    id="connection-per-message",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Applications that connect for each message",
    why="A connection costs several round trips, with TLS also CPU time of the broker, and ends all batching. Brokers "
    "limit the rate of new connections (max.connection.creation.rate).",
    citation=Citation(
        where="KafkaProducer",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/producer/KafkaProducer.html",
        words="The producer is thread safe and sharing a single producer instance across threads will generally be "
        "faster than having multiple instances.",
    ),
    remedy=Remedy(
        java="one producer, consumer or Admin per application, closed at its end",
        librdkafka="one handle per application, closed at its end",
        aiokafka="start() once per application, stop() at its end",
        franz_go="one kgo.Client per application, closed at its end",
        kafkajs="connect() once per application, disconnect() at its end",
    ),
    silent="Below three such connections per second.",
    check=_check,
)
