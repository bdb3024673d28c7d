"""Rules about metadata and unknown topics."""

from collections.abc import Iterator

from sluice.lint.facts.subjects import ClientFacts
from sluice.lint.facts.topics import TopicFacts
from sluice.lint.rule import Evidence, Remedy, Severity, cited, rule


@rule(
    Severity.INFO,
    title="Topics that brokers created because a client requested their metadata",
    why="The topic has the broker's default number of partitions and replicas, often one, and a misspelled name "
    "creates a topic instead of an error. This is convenient in development, and the default of brokers and producers.",
    citation=cited("Broker Configs, num.partitions", "The default number of log partitions per topic"),
    remedy=Remedy(
        java="create topics explicitly; allow.auto.create.topics=false in consumers; auto.create.topics.enable=false "
        "in brokers",
        librdkafka="create topics explicitly; allow.auto.create.topics=false",
        aiokafka="create topics explicitly; auto.create.topics.enable=false in brokers",
        franz_go="create topics explicitly; without kgo.AllowAutoTopicCreation()",
        kafkajs="create topics explicitly; allowAutoTopicCreation: false",
    ),
    silent="If a client sent CreateTopics for it. A topic that something else created at that moment looks the same.",
)
def auto_created_topic(facts: TopicFacts) -> Iterator[Evidence]:
    if facts.appeared and not facts.is_created:
        yield Evidence(
            "the topic was unknown to a Metadata request that allows auto creation, and existed shortly after that",
            facts.appeared,
        )


@rule(
    Severity.WARNING,
    title="Clients that request metadata again and again",
    why="A response for many topics is large and expensive for the broker. A healthy client requests metadata every "
    "few minutes, and after an error with a backoff.",
    citation=cited(
        "Producer Configs, metadata.max.age.ms",
        "The period of time in milliseconds after which we force a refresh of metadata even if we haven't seen any "
        "partition leadership changes to proactively discover any new brokers or partitions.",
    ),
    remedy=Remedy(
        java="metadata.max.age.ms=300000, retry.backoff.ms=100, the defaults; partitionsFor() not per record",
        librdkafka="topic.metadata.refresh.interval.ms=300000, the default; list_topics() not per message",
        aiokafka="metadata_max_age_ms=300000, retry_backoff_ms=100, the defaults",
        franz_go="kgo.MetadataMaxAge(5*time.Minute), kgo.MetadataMinAge(5*time.Second)",
        kafkajs="metadataMaxAge: 300000, the default",
    ),
    silent="Below 20 requests per second, without the first two of each connection.",
)
def metadata_storm(facts: ClientFacts) -> Iterator[Evidence]:
    repeated = facts.connections.metadata
    if repeated.fastest_ns:
        total = facts.traffic.apis["Metadata"]
        yield Evidence(
            f"{total:,} Metadata requests, of the repeated ones on a connection {repeated.in_words}", repeated.examples
        )


# The creation of a topic takes less than a second; a client with the default retry.backoff.ms then has fewer errors.
_LEAST = 10


@rule(
    Severity.WARNING,
    title="Clients that request an unknown topic again and again",
    why="The error is retriable, because a new topic is not known at once, so clients retry for minutes or without "
    "end. The name is wrong, the topic was deleted, or it has not been created.",
    citation=cited(
        "Protocol, Error Codes",
        "This server does not host this topic-partition.",
        "https://kafka.apache.org/protocol#protocol_error_codes",
    ),
    remedy=Remedy(
        java="create the topic; max.block.ms limits how long send() waits for it",
        librdkafka="create the topic; topic.metadata.propagation.max.ms limits how long messages wait for it",
        aiokafka="create the topic; request_timeout_ms limits how long send() waits for it",
        franz_go="create the topic; kgo.UnknownTopicRetries limits the retries",
        kafkajs="create the topic; retry: {retries: 5} limits the retries",
    ),
    silent="Below ten errors for a topic on one connection.",
)
def unknown_topic(facts: ClientFacts) -> Iterator[Evidence]:
    for subject, refusals in facts.retries.unknown.items():
        if refusals.most >= _LEAST:
            yield Evidence(
                f"{refusals.count:,} requests for {subject} failed with UNKNOWN_TOPIC_OR_PARTITION within "
                f"{refusals.seconds:.3g} s",
                refusals.examples,
            )
