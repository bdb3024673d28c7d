"""Producers that send small batches."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_MOST = 0.9  # share of such requests; some are sent while a connection is made, and have more records


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    producing = facts.producing
    small = producing.small
    if small.fastest_ns and small.count + producing.single.count >= _MOST * producing.requests:
        yield Evidence(
            f"{small.count:,} of {producing.requests:,} Produce requests have batches of several records below 1 KiB "
            f"({producing.records.mean:.1f} records, {producing.batch_bytes.mean:,.0f} bytes on average), "
            f"{small.in_words}",
            small.examples,
        )


RULE = Rule(
    id="small-batches",
    scope=Scope.CLIENT,
    severity=Severity.INFO,
    title="Producers that send batches far below the batch size, at a high rate",
    why="Each request costs the same, whether its batches are full or not, and small batches compress badly.",
    citation=Citation(
        where="Producer Configs, batch.size",
        url="https://kafka.apache.org/documentation/#producerconfigs_batch.size",
        words="A small batch size will make batching less common and may reduce throughput",
    ),
    remedy=Remedy(
        java="linger.ms=20, batch.size=65536",
        librdkafka="linger.ms=20, batch.num.messages=10000, batch.size=1000000",
        aiokafka="linger_ms=20, max_batch_size=65536",
        franz_go="kgo.ProducerLinger(20*time.Millisecond), kgo.ProducerBatchMaxBytes(1000012)",
        kafkajs="more messages per producer.send() or sendBatch()",
    ),
    silent="Below 200 requests/s, or if more than a tenth of the requests have larger batches.",
    check=_check,
)
