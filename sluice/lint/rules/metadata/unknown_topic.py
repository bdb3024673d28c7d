"""Clients that use a topic that does not exist."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# The creation of a topic takes less than a second; a client with the default retry.backoff.ms then has fewer errors.
_LEAST = 10


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    for subject, refusals in facts.retries.unknown.items():
        if refusals.most >= _LEAST:
            yield Evidence(
                f"{refusals.count:,} requests for {subject} failed with UNKNOWN_TOPIC_OR_PARTITION within "
                f"{refusals.seconds:.3g} s",
                refusals.examples,
            )


RULE = Rule(
    id="unknown-topic",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Clients that request an unknown topic again and again",
    why="The error is retriable, because a new topic is not known at once, so clients retry for minutes or without "
    "end. The name is wrong, the topic was deleted, or it has not been created.",
    citation=Citation(
        where="Protocol, Error Codes",
        url="https://kafka.apache.org/protocol#protocol_error_codes",
        words="This server does not host this topic-partition.",
    ),
    remedy=Remedy(
        java="create the topic; max.block.ms limits how long send() waits for it",
        librdkafka="create the topic; topic.metadata.propagation.max.ms limits how long messages wait for it",
        aiokafka="create the topic; request_timeout_ms limits how long send() waits for it",
        franz_go="create the topic; kgo.UnknownTopicRetries limits the retries",
        kafkajs="create the topic; retry: {retries: 5} limits the retries",
    ),
    silent="Below ten errors for a topic on one connection.",
    check=_check,
)
