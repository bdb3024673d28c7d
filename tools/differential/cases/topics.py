"""Creation and description of topics."""

from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tools.differential.case import case
from tools.differential.session import Session


@case()
def describe_a_topic(session: Session) -> None:
    session.create_topic("topics-created", 2)
    session.call(MetadataRequest(topics=[MetadataRequestTopic(name="topics-created")]))


@case()
def create_a_topic_that_exists(session: Session) -> None:
    session.create_topic("topics-twice")
    topic = CreatableTopic(name="topics-twice", num_partitions=1, replication_factor=1)
    session.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000))
