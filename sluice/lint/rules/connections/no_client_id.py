"""Clients without a client id."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# Libraries send these if the application sets no client id.
_DEFAULTS = {"": "no client id", "rdkafka": "librdkafka's default client id", "sarama": "Sarama's default client id"}


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    words = _DEFAULTS.get(facts.key.client_id)
    requests = facts.traffic.apis.total()
    if words and requests:
        yield Evidence(f"{requests:,} requests with {words}", facts.traffic.examples)


RULE = Rule(
    id="no-client-id",
    scope=Scope.CLIENT,
    severity=Severity.INFO,
    title="Clients without a client id of their own",
    why="Quotas, metrics and the broker's request log identify clients by this id. All clients without one share it.",
    citation=Citation(
        where="Producer Configs, client.id",
        url="https://kafka.apache.org/documentation/#producerconfigs_client.id",
        words="An id string to pass to the server when making requests. The purpose of this is to be able to track the "
        "source of requests beyond just ip/port by allowing a logical application name to be included in server-side "
        "request logging.",
    ),
    remedy=Remedy(
        java="client.id=<application>",
        librdkafka="client.id=<application>",
        aiokafka="client_id='<application>'",
        franz_go='kgo.ClientID("<application>")',
        kafkajs="clientId: '<application>'",
    ),
    silent="If the id is the default of a library that is not known to the rule.",
    check=_check,
)
