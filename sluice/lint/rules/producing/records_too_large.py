"""Records that the broker refuses because of their size."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_LEAST = 3  # a producer that splits a batch has one refusal per split


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    count = facts.producing.too_large
    if count >= _LEAST:
        yield Evidence(
            f"{count:,} of {facts.producing.requests:,} Produce requests were refused with MESSAGE_TOO_LARGE",
            facts.producing.examples_of("too large"),
        )


RULE = Rule(
    id="records-too-large",
    scope=Scope.CLIENT,
    severity=Severity.ERROR,
    title="Batches that are too large for the topic, again and again",
    why="A record above the limit is lost unless the application handles the error. The producer allows larger "
    "requests than the topic (max.message.bytes, by default 1,048,588 bytes).",
    citation=Citation(
        where="Producer Configs, max.request.size",
        url="https://kafka.apache.org/documentation/#producerconfigs_max.request.size",
        words="Note that the server has its own cap on the record batch size (after compression if compression is "
        "enabled) which may be different from this.",
    ),
    remedy=Remedy(
        java="max.request.size at most the topic's max.message.bytes, or a larger max.message.bytes",
        librdkafka="message.max.bytes at most the topic's max.message.bytes, or a larger max.message.bytes",
        aiokafka="max_request_size at most the topic's max.message.bytes, or a larger max.message.bytes",
        franz_go="kgo.ProducerBatchMaxBytes at most the topic's max.message.bytes, or a larger max.message.bytes",
        kafkajs="smaller messages, fewer per producer.send(), or a larger max.message.bytes",
    ),
    silent="Below three refusals, or if the producer itself refuses the record.",
    check=_check,
)
