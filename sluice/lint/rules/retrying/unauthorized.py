"""Clients that send requests that they are not authorized for."""

from collections.abc import Iterator

from sluice.lint.facts.client_facts import ClientFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity

_LEAST = 5  # several calls of an application may fail before a person reads its log


def _check(facts: ClientFacts) -> Iterator[Evidence]:
    for subject, refusals in facts.retries.unauthorized.items():
        if refusals.most >= _LEAST:
            yield Evidence(
                f"{refusals.count:,} requests were not authorized: {subject}, within {refusals.seconds:.3g} s",
                refusals.examples,
            )


RULE = Rule(
    id="unauthorized",
    scope=Scope.CLIENT,
    severity=Severity.WARNING,
    title="Clients that are refused again and again because they are not authorized",
    why="A retry cannot succeed. An ACL is missing, or the client uses the wrong topic, group or principal.",
    citation=Citation(
        where="Authorization and ACLs",
        url="https://kafka.apache.org/documentation/#security_authz",
        words="By default, if no ResourcePatterns match a specific Resource R, then R has no associated ACLs, and "
        "therefore no one other than super users is allowed to access R.",
    ),
    remedy=Remedy(
        java="kafka-acls --add; stop at an AuthorizationException",
        librdkafka="kafka-acls --add; stop at ..._AUTHORIZATION_FAILED errors",
        aiokafka="kafka-acls --add; stop at ...AuthorizationFailedError",
        franz_go="kafka-acls --add; stop at kerr....AuthorizationFailed",
        kafkajs="kafka-acls --add; stop at ..._AUTHORIZATION_FAILED errors",
    ),
    silent="Below five refusals of one host.",
    check=_check,
)
