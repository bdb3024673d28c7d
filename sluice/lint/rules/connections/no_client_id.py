"""Clients without a client id."""

from collections.abc import Iterator
from re import fullmatch

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

# Libraries send these if the application sets no client id.
_DEFAULTS = {
    "": "no client id",
    r"rdkafka": "librdkafka's default client id",
    r"sarama": "Sarama's default client id",
    r"kgo": "franz-go's default client id",
    r"kafkajs": "kafkajs' default client id",
    r"aiokafka-(producer-\d+|[\d.]+\w*)": "a default client id of aiokafka",
    r"kafka-python-(producer-\d+|[\d.]+\w*)": "a default client id of kafka-python",
    r"(producer|adminclient)-\d+": "a default client id of the Java client",
}


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    words = next((words for each, words in _DEFAULTS.items() if fullmatch(each, facts.key.client_id)), "")
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
    silent="If the rule does not know the default of the library. That of a Java consumer has its group.",
    check=_check,
)
