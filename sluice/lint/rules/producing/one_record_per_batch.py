"""Producers that send each record in a request of its own."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_MOST = 0.9  # share of such requests; some are sent while a connection is made, and have more records


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    producing = facts.producing
    single = producing.single
    if single.fastest_ns and single.count >= _MOST * producing.requests:
        yield Evidence(
            f"{single.count:,} of {producing.requests:,} Produce requests have one record, {single.in_words}",
            single.examples,
        )


RULE = Rule(
    id="one-record-per-batch",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Producers that send each record in a request of its own, at a high rate",
    why="A request costs the client, the network and the broker many times what a record costs. Above 200 requests/s, "
    "even linger.ms=5, Kafka's default, would collect several records.",
    citation=Citation(
        where="Producer Configs, linger.ms",
        url="https://kafka.apache.org/documentation/#producerconfigs_linger.ms",
        words="The default changed from 0 to 5 in Apache Kafka 4.0 as the efficiency gains from larger batches "
        "typically result in similar or lower producer latency despite the increased linger.",
    ),
    remedy=Remedy(
        java="linger.ms=5, and send() without get() or flush() per record",
        librdkafka="linger.ms=5, and no flush() per message",
        aiokafka="linger_ms=5, and send() instead of await send_and_wait() per record",
        franz_go="kgo.ProducerLinger(5*time.Millisecond), and Produce instead of ProduceSync per record",
        kafkajs="several messages per producer.send() or sendBatch()",
    ),
    silent="Below 200 requests/s, if more than a tenth of the requests have several records, or if two would not fit "
    "into a batch of the default batch.size.",
    check=_check,
)
