"""Producers that give a request up before the broker would respond."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.facts.deliveries import of_one_timeout
from sluice.lint.facts.measures.examples import Examples
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_LEAST = 2  # one request may be abandoned because the application ends
_MOST = 0.9  # share of timeout_ms; a client that waits as long as the broker is right


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    early = [each for each in facts.deliveries.abandoned if each.waited_ms < _MOST * each.timeout_ms]
    again = [each for each in early if each.is_again]
    early = again + of_one_timeout([each for each in early if not each.is_again])
    if len(early) >= _LEAST:
        shortest = min(early, key=lambda each: each.waited_ms)
        yield Evidence(
            f"{len(early):,} Produce requests were given up, such as one after {shortest.waited_ms:,} ms although the "
            f"broker was to wait {shortest.timeout_ms:,} ms for the replicas",
            Examples.of(each.request for each in early),
        )


RULE = Rule(
    id="request-timeout-too-short",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Producers that give requests up before the broker would respond",
    why="The broker still appends the batch. The retry costs a new connection, and without idempotence it duplicates "
    "the records.",
    citation=Citation(
        where="Producer Configs, request.timeout.ms",
        url="https://kafka.apache.org/documentation/#producerconfigs_request.timeout.ms",
        words="This should be larger than replica.lag.time.max.ms (a broker configuration) to reduce the possibility "
        "of message duplication due to unnecessary producer retries.",
    ),
    remedy=Remedy(
        java="request.timeout.ms=30000, the default, above replica.lag.time.max.ms",
        librdkafka="socket.timeout.ms above request.timeout.ms; the defaults are 60000 and 30000",
        aiokafka="request_timeout_ms=40000, the default",
        franz_go="kgo.RequestTimeoutOverhead(10*time.Second), the default",
        kafkajs="requestTimeout above the timeout of producer.send(); both are 30000 by default",
    ),
    silent="If the client waits as long as timeout_ms of its requests, or reads no response but keeps the connection.",
    check=_check,
)
