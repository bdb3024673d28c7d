"""Clients whose logins fail again and again."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_LEAST = 5  # a person who mistypes a password gives up earlier


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    logins = facts.retries.logins
    if logins.most >= _LEAST:
        yield Evidence(f"{logins.count:,} logins failed within {logins.seconds:.3g} s", logins.examples)


RULE = Rule(
    id="logins-refused",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Clients that log in again and again with wrong credentials",
    why="A retry cannot succeed. Each one costs the broker a connection and a comparison of a salted password.",
    citation=Citation(
        where="Broker Configs, connection.failed.authentication.delay.ms",
        url="https://kafka.apache.org/documentation/#brokerconfigs_connection.failed.authentication.delay.ms",
        words="Connection close delay on failed authentication: this is the time (in milliseconds) by which connection "
        "close will be delayed on authentication failure.",
    ),
    remedy=Remedy(
        java="sasl.jaas.config, sasl.mechanism; stop at an AuthenticationException",
        librdkafka="sasl.username, sasl.password, sasl.mechanisms; stop at _AUTHENTICATION errors",
        aiokafka="sasl_plain_username, sasl_plain_password, sasl_mechanism",
        franz_go="kgo.SASL",
        kafkajs="sasl: {mechanism, username, password}",
    ),
    silent="Below five failed logins of one host.",
    check=_check,
)
