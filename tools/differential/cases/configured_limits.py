"""Broker properties that limit responses, or become configs of the coordinators' topics."""

from sluice.broker.controller.configs.resource import TOPIC
from tests.support.messages import request
from tools.differential.case import Layout, case
from tools.differential.cases.descriptions import describe
from tools.differential.requests import GROUP, TRANSACTION, coordinator
from tools.differential.session import Session

LIMITED = Layout(
    (
        "log.segment.bytes=1073741824",
        "max.request.partition.size.limit=2",
        "transaction.state.log.min.isr=3",
        "transaction.state.log.segment.bytes=2097152",
        "offsets.topic.segment.bytes=3145728",
    )
)


@case(LIMITED)
def describe_partitions_in_pages(session: Session) -> None:
    session.create_topic("limits-pages", 3)
    for limit in (1, 2, 9999):
        for cursor in ({}, {"cursor": {"topic_name": "limits-pages", "partition_index": 1}}):
            fields = {"topics": [{"name": "limits-pages"}], "response_partition_limit": limit}
            session.call(request("DescribeTopicPartitions", **fields, **cursor))


@case(LIMITED)
def describe_the_topics_of_coordinators(session: Session) -> None:
    for kind, name in ((GROUP, "__consumer_offsets"), (TRANSACTION, "__transaction_state")):
        session.request(coordinator("limits", kind))
        session.wait_for_leaders(name)
        describe(session, TOPIC, name)
