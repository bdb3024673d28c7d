"""Topics that brokers created because a client requested their metadata."""

from collections.abc import Iterator

from sluice.lint.facts.topics import TopicFacts
from sluice.lint.rule import Citation, Evidence, Remedy, Rule, Scope, Severity


def _check(facts: TopicFacts) -> Iterator[Evidence]:
    if facts.appeared and not facts.is_created:
        yield Evidence(
            "the topic was unknown to a Metadata request that allows auto creation, and existed shortly after that",
            facts.appeared,
        )


RULE = Rule(
    id="auto-created-topic",
    scope=Scope.TOPIC,
    severity=Severity.INFO,
    title="Topics that brokers created because a client requested their metadata",
    why="The topic has the broker's default number of partitions and replicas, often one, and a misspelled name "
    "creates a topic instead of an error. This is convenient in development, and the default of brokers and producers.",
    citation=Citation(
        where="Broker Configs, num.partitions",
        url="https://kafka.apache.org/documentation/#brokerconfigs_num.partitions",
        words="The default number of log partitions per topic",
    ),
    remedy=Remedy(
        java="create topics explicitly; allow.auto.create.topics=false in consumers; auto.create.topics.enable=false "
        "in brokers",
        librdkafka="create topics explicitly; allow.auto.create.topics=false",
        aiokafka="create topics explicitly; auto.create.topics.enable=false in brokers",
        franz_go="create topics explicitly; without kgo.AllowAutoTopicCreation()",
        kafkajs="create topics explicitly; allowAutoTopicCreation: false",
    ),
    silent="If a client sent CreateTopics for it. A topic that something else created at that moment looks the same.",
    check=_check,
)
