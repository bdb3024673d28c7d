"""Producers that do not retry retriable errors."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.facts.deliveries import is_recognizable
from sluice.lint.facts.measures.examples import Examples
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity, Unknown
from sluice.protocol.errors import ErrorCode

_LEAST = 2  # one batch may be given up because the application ends


def _check(facts: ClientFacts) -> Iterator[Evidence | Unknown]:
    failed = [each.request for each in facts.deliveries.given_up() if each.request.error_codes]
    given_up = [each for each in failed if is_recognizable(each)]
    if len(given_up) < _LEAST:
        if len(failed) >= _LEAST:
            yield Unknown("Set sluice.journal.record.hashes=true, or enable idempotence in the producer.")
    else:
        names = sorted({ErrorCode(code).name for each in given_up for code in each.error_codes})
        yield Evidence(
            f"{len(given_up):,} batches failed with a retriable error ({', '.join(names)}) and were not sent again",
            Examples.of(given_up),
        )


RULE = Rule(
    id="retries-disabled",
    scope=Scope.CLIENT,
    severity=Severity.ERROR,
    title="Producers that do not retry retriable errors",
    why="The records are lost unless the application handles each error. Such errors are common: each election of a "
    "leader, such as in a rolling restart, causes NOT_LEADER_OR_FOLLOWER.",
    citation=Citation(
        where="Producer Configs, retries",
        url="https://kafka.apache.org/documentation/#producerconfigs_retries",
        words="Setting a value of zero will disable this automatic retry behaviour, so that the transient errors will "
        "be propagated to the application to be handled.",
    ),
    remedy=Remedy(
        java="retries=2147483647, the default; limit delivery.timeout.ms instead",
        librdkafka="retries=2147483647, the default; limit message.timeout.ms instead",
        aiokafka="no such setting: it retries for request_timeout_ms",
        franz_go="without kgo.RecordRetries(0); limit kgo.RecordDeliveryTimeout instead",
        kafkajs="retry: {retries: 5}, the default",
    ),
    silent="If the producer sent no other batch for 5 s after that, is transactional, or may have regrouped the "
    "records.",
    check=_check,
)
