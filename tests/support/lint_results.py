"""Results of lint for tests of its reports: findings of each severity, about a client, a group and a topic."""

from sluice.lint.clients import ClientKey
from sluice.lint.facts.measures.examples import Example
from sluice.lint.findings import Client, Finding, Result, Undecided
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity
from sluice.lint.settings import Certainty, Setting
from tests.support.journals import ns

JAVA = ClientKey("shop", "apache-kafka-java", "4.4.0")
OTHER = ClientKey("<b>\x1b[31m", "sarama", "1.43")


def rule(name: str, scope: Scope, severity: Severity) -> Rule[object]:
    return Rule(
        id=name,
        scope=scope,
        severity=severity,
        title=f"Title of {name}",
        why=f"Why {name}.",
        citation=Citation(where="KIP-1", url="https://cwiki.apache.org/kip-1", words="Words of Kafka."),
        remedy=Remedy(java="acks=all", librdkafka="acks=-1", aiokafka="", franz_go="kgo.Acks()", kafkajs="acks: -1"),
        silent="Never.",
        check=lambda facts: (),
    )


RULES = {
    each.id: each
    for each in (
        rule("lost-records", Scope.CLIENT, Severity.ERROR),
        rule("many-rebalances", Scope.GROUP, Severity.WARNING),
        rule("hot-partition", Scope.TOPIC, Severity.INFO),
    )
}


def finding(name: str, subject: str, *clients: ClientKey) -> Finding:
    found = RULES[name]
    return Finding(
        rule=name,
        severity=found.severity,
        scope=found.scope,
        subject=subject,
        clients=clients,
        evidence=[Evidence("3 of 4 requests", [Example(17, ns(5), "orders-0@7.0.3")]), Evidence("2 of 4 batches")],
    )


def result() -> Result:
    return Result(
        events=1234,
        lost=5,
        clients=[
            Client(key=OTHER, requests=1, began_ns=ns(0), ended_ns=ns(10), settings=[]),
            Client(
                key=JAVA,
                requests=1200,
                began_ns=ns(0),
                ended_ns=ns(60_000),
                settings=[Setting(name="acks", value="1", certainty=Certainty.STATED, basis="1,200 Produce requests")],
            ),
        ],
        findings=[
            finding("lost-records", str(JAVA), JAVA),
            finding("many-rebalances", "readers", JAVA, OTHER),
            finding("hot-partition", "orders", OTHER),
        ],
        undecided=[
            Undecided(
                rule="lost-records", scope=Scope.CLIENT, subject=str(OTHER), clients=[OTHER], record="Record more."
            )
        ],
    )
