"""Consumers whose fetches nearly always end at a limit below the default."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_MOST = 0.9
# Fewer can be one backlog that is read after a restart.
_RESPONSES = 20


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    fetching = facts.fetching
    if fetching.limited >= _RESPONSES and fetching.cut >= _MOST * fetching.limited:
        yield Evidence(
            f"{fetching.cut:,} of {fetching.limited:,} responses left off records that the partition had; the limit is "
            f"{fetching.smallest_limit:,} bytes",
            fetching.cut_examples,
        )


RULE = Rule(
    id="fetches-cut",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Fetches that a low limit cuts short",
    why="The partition had more records than the limit lets a response contain. The consumer needs a round "
    "trip for each small piece, so it falls behind sooner.",
    citation=Citation(
        where="Consumer Configs, fetch.min.bytes",
        url="https://kafka.apache.org/documentation/#consumerconfigs_fetch.min.bytes",
        words="Even if the total data available in the broker exceeds fetch.min.bytes, the actual returned size"
        " may still be less than this value due to per-partition limits max.partition.fetch.bytes and max"
        " returned limits fetch.max.bytes.",
    ),
    remedy=Remedy(
        java="max.partition.fetch.bytes=1048576, fetch.max.bytes=52428800",
        librdkafka="max.partition.fetch.bytes=1048576, fetch.max.bytes=52428800",
        aiokafka="max_partition_fetch_bytes=1048576, fetch_max_bytes=52428800",
        franz_go="kgo.FetchMaxPartitionBytes(1 << 20), kgo.FetchMaxBytes(50 << 20)",
        kafkajs="maxBytesPerPartition: 1048576, maxBytes: 10485760",
    ),
    silent="If the limits are the defaults, or higher; if fewer than 20 responses had records.",
    check=_check,
)
