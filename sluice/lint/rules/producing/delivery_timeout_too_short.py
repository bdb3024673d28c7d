"""Producers that give a record up after one attempt."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.facts.deliveries import is_recognizable, of_one_timeout
from sluice.lint.facts.measures.examples import Examples
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_LEAST = 2  # one batch may be given up because the application ends


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    given_up = facts.deliveries.given_up()
    unanswered = of_one_timeout(
        [each for each in given_up if not each.request.error_codes and is_recognizable(each.request)]
    )
    if len(unanswered) >= _LEAST:
        yield Evidence(
            f"{len(unanswered):,} batches were sent once, had no response in time, and were not sent again",
            Examples.of(each.request for each in unanswered),
        )


RULE = Rule(
    id="delivery-timeout-too-short",
    scope=Scope.CLIENT,
    severity=Severity.ERROR,
    title="Producers whose delivery timeout does not allow a second attempt",
    why="If one response is late, such as during an election, the records are lost although a retry would succeed.",
    citation=Citation(
        where="Producer Configs, delivery.timeout.ms",
        url="https://kafka.apache.org/documentation/#producerconfigs_delivery.timeout.ms",
        words="The value of this config should be greater than or equal to the sum of request.timeout.ms and "
        "linger.ms.",
    ),
    remedy=Remedy(
        java="delivery.timeout.ms=120000, the default",
        librdkafka="message.timeout.ms above socket.timeout.ms; the defaults are 300000 and 60000",
        aiokafka="request_timeout_ms=40000, the default, which also limits the delivery",
        franz_go="kgo.RecordDeliveryTimeout above kgo.ProduceRequestTimeout, kgo.RecordRetries above 1",
        kafkajs="retry: {retries: 5}, the default",
    ),
    silent="If the client closed its connection, or sent no other batch for 5 s after that.",
    check=_check,
)
