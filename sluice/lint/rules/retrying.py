"""Rules about failed requests and their retries."""

from collections.abc import Iterator

from sluice.lint.facts.subjects import ClientFacts
from sluice.lint.rule import Evidence, Remedy, Severity, cited, properties, rule
from sluice.protocol.errors import ErrorCode

_LEAST = 5  # several calls of an application may fail before a person reads its log


@rule(
    Severity.WARNING,
    title="Requests that are refused again and again with an error that a retry cannot cure",
    why="The request itself is wrong. The application, or a loop around the client, ignores the error.",
    citation=cited(
        "RetriableException",
        "A retriable exception is a transient exception that if retried may succeed.",
        "https://kafka.apache.org/41/javadoc/org/apache/kafka/common/errors/RetriableException.html",
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
)
def refused_again(facts: ClientFacts) -> Iterator[Evidence]:
    for (api, code, subject), refusals in facts.retries.refused.items():
        if refusals.most >= _LEAST:
            yield Evidence(
                f"{refusals.count:,} {api} requests for {subject} failed with {ErrorCode(code).name} within "
                f"{refusals.seconds:.3g} s",
                refusals.examples,
            )


# Kafka's default maximum (retry.backoff.max.ms: 1000) less its jitter. A client that always waits as
# long does no harm.
_HARMLESS_MS = 800


@rule(
    Severity.WARNING,
    title="Clients that retry without a growing backoff",
    why="When a broker is overloaded, all such clients keep it overloaded by retries at the same high rate.",
    citation=cited(
        "Producer Configs, retry.backoff.max.ms",
        "If provided, the backoff per client will increase exponentially for each failed request, up to this maximum.",
    ),
    remedy=Remedy(
        java="kafka-clients 3.7 or later with retry.backoff.ms=100, retry.backoff.max.ms=1000, the defaults",
        librdkafka="retry.backoff.ms=100, retry.backoff.max.ms=1000, the defaults since 2.3",
        aiokafka="a larger retry_backoff_ms; its waits do not grow",
        franz_go="without kgo.RetryBackoffFn, waits grow from 250 ms to 2.5 s; a retry of a batch also waits for new "
        "metadata: kgo.MetadataMinAge(5*time.Second), the default",
        kafkajs="retry: {initialRetryTime: 300, multiplier: 2}, the defaults",
    ),
    silent="If fewer than three retries of a request followed each other, waits are 0.8 s or longer, the first "
    "attempts are not in the journal, or retries cannot be recognized (requests for several partitions).",
)
def retries_without_growing_waits(facts: ClientFacts) -> Iterator[Evidence]:
    for api, waits in facts.retries.waits.items():
        found = waits.constant()
        if found is not None and found.base_ms < _HARMLESS_MS:
            yield Evidence(
                f"waits about {found.base_ms:,.0f} ms each time before it retries {api} ({found.waits:,} waits)",
                waits.examples,
            )


@rule(
    Severity.ERROR,
    title="Clients that retry failed requests in a tight loop",
    why="The load comes on top of whatever made the first request fail, and other clients share the broker.",
    citation=cited(
        "Producer Configs, retry.backoff.ms",
        "This avoids repeatedly sending requests in a tight loop under some failure scenarios.",
    ),
    remedy=properties(
        "retry.backoff.ms=100, the default; a pause where the application retries",
        franz_go="without kgo.RetryBackoffFn; kgo.MetadataMinAge(5*time.Second), the default, for batches",
        kafkajs="retry: {initialRetryTime: 300}, the default; a pause where the application retries",
    ),
    silent="Below 200 failed requests of an API within 5 s, the threshold of the audit.",
)
def retry_storm(facts: ClientFacts) -> Iterator[Evidence]:
    for api, failures in facts.retries.failures.items():
        if failures.fastest_ns:
            what = "failed retries of batches" if api == "Produce" else f"failed {api} requests"
            yield Evidence(f"{failures.count:,} {what}, {failures.in_words}", failures.examples)


@rule(
    Severity.WARNING,
    title="Clients that are refused again and again because they are not authorized",
    why="A retry cannot succeed. An ACL is missing, or the client uses the wrong topic, group or principal.",
    citation=cited(
        "Authorization and ACLs",
        "By default, if no ResourcePatterns match a specific Resource R, then R has no associated ACLs, and therefore "
        "no one other than super users is allowed to access R.",
        "https://kafka.apache.org/documentation/#security_authz",
    ),
    remedy=Remedy(
        java="kafka-acls --add; stop at an AuthorizationException",
        librdkafka="kafka-acls --add; stop at ..._AUTHORIZATION_FAILED errors",
        aiokafka="kafka-acls --add; stop at ...AuthorizationFailedError",
        franz_go="kafka-acls --add; stop at kerr....AuthorizationFailed",
        kafkajs="kafka-acls --add; stop at ..._AUTHORIZATION_FAILED errors",
    ),
    silent="Below five refusals of one host.",
)
def unauthorized(facts: ClientFacts) -> Iterator[Evidence]:
    for subject, refusals in facts.retries.unauthorized.items():
        if refusals.most >= _LEAST:
            yield Evidence(
                f"{refusals.count:,} requests were not authorized: {subject}, within {refusals.seconds:.3g} s",
                refusals.examples,
            )
