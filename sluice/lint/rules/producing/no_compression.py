"""Producers that do not compress large batches."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# Ten times the default max.request.size, so that no single test record decides.
_LEAST_BYTES = 10 * 1024 * 1024
# Compression is per batch: smaller ones have little redundancy.
_LEAST_BATCH_BYTES = 4096


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    producing = facts.producing
    plain, total = producing.compression["none"], producing.compression.total()
    if plain >= _LEAST_BYTES and 2 * plain > total and producing.batch_bytes.mean >= _LEAST_BATCH_BYTES:
        yield Evidence(
            f"{plain / 1e6:,.0f} of {total / 1e6:,.0f} MB are not compressed, in batches of "
            f"{producing.batch_bytes.mean:,.0f} bytes on average",
        )


RULE = Rule(
    id="no-compression",
    scope=Scope.CLIENT,
    severity=Severity.INFO,
    title="Producers that do not compress large batches",
    why="Text and JSON shrink to a fraction in network, page cache and disk, also for each replica and consumer. "
    "Values that are compressed already, such as images, do not shrink. No compression is the default of all "
    "libraries.",
    citation=Citation(
        where="Design, End-to-end Batch Compression",
        url="https://kafka.apache.org/documentation/#design_compression",
        words="In some cases the bottleneck is actually not CPU or disk but network bandwidth.",
    ),
    remedy=Remedy(
        java="compression.type=lz4 or zstd",
        librdkafka="compression.type=lz4 or zstd",
        aiokafka="compression_type='lz4' or 'zstd'",
        franz_go="kgo.ProducerBatchCompression(kgo.Lz4Compression()), or kgo.ZstdCompression()",
        kafkajs="producer.send({compression: CompressionTypes.GZIP})",
    ),
    silent="Below 10 MiB without compression, or if batches have less than 4 KiB on average.",
    check=_check,
)
