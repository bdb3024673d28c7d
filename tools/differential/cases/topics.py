"""Creation and description of topics."""

from tools.differential.case import case
from tools.differential.requests import create_topics, metadata
from tools.differential.session import Session


@case()
def describe_a_topic(session: Session) -> None:
    session.create_topic("topics-created", 2)
    session.call(metadata("topics-created", auto_create=True))


@case()
def create_a_topic_that_exists(session: Session) -> None:
    session.create_topic("topics-twice")
    session.call(create_topics({"name": "topics-twice", "num_partitions": 1, "replication_factor": 1}))
