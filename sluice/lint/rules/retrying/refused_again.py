"""Requests that are refused again and again although a retry cannot help."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity
from sluice.protocol.errors import ErrorCode

_LEAST = 5  # several calls of an application may fail before a person reads its log


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    for (api, code, subject), refusals in facts.retries.refused.items():
        if refusals.most >= _LEAST:
            yield Evidence(
                f"{refusals.count:,} {api} requests for {subject} failed with {ErrorCode(code).name} within "
                f"{refusals.seconds:.3g} s",
                refusals.examples,
            )


RULE = Rule(
    id="refused-again",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Requests that are refused again and again with an error that a retry cannot cure",
    why="The request itself is wrong. The application, or a loop around the client, ignores the error.",
    citation=Citation(
        where="RetriableException",
        url="https://kafka.apache.org/41/javadoc/org/apache/kafka/common/errors/RetriableException.html",
        words="A retriable exception is a transient exception that if retried may succeed.",
    ),
    remedy=Remedy(
        java="handle exceptions that are no RetriableException: stop, or skip the record",
        librdkafka="handle errors for which retriable() is false: stop, or skip the message",
        aiokafka="handle KafkaErrors with retriable=False: stop, or skip the record",
        franz_go="handle errors for which kerr.IsRetriable is false: stop, or skip the record",
        kafkajs="handle errors with retriable: false: stop, or skip the message",
    ),
    silent="Below five errors for a topic or group from one host. Authorization errors and records that are too large "
    "have separate rules.",
    check=_check,
)
