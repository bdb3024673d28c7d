"""Consumers that request an offset which the partition does not have."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    fetching = facts.fetching
    if fetching.out_of_range:
        yield Evidence(
            f"requests that failed with OFFSET_OUT_OF_RANGE: {fetching.out_of_range:,}", fetching.out_of_range_examples
        )


RULE = Rule(
    id="offset-out-of-range",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Requests for offsets that do not exist",
    why="The consumer was so far behind that retention deleted its next records, or the log was truncated or "
    "recreated. It then continues where auto.offset.reset says, and skips or repeats records.",
    citation=Citation(
        where="Consumer Configs, auto.offset.reset",
        url="https://kafka.apache.org/documentation/#consumerconfigs_auto.offset.reset",
        words="What to do when there is no initial offset in Kafka or if the current offset does not exist any "
        "more on the server (e.g. because that data has been deleted)",
    ),
    remedy=Remedy(
        java="auto.offset.reset=none to notice it, or earliest; a longer retention.ms of the topic",
        librdkafka="auto.offset.reset=error to notice it, or earliest; a longer retention.ms of the topic",
        aiokafka="auto_offset_reset='none' to notice it, or 'earliest'; a longer retention.ms of the topic",
        franz_go="kgo.ConsumeResetOffset(kgo.NoResetOffset()) to notice it, or kgo.NewOffset().AtStart(); a longer"
        " retention.ms of the topic",
        kafkajs="fromBeginning: true; a longer retention.ms of the topic",
    ),
    silent="If a fault rule injected the error.",
    check=_check,
)
