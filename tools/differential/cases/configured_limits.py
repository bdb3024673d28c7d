"""Broker properties that limit responses, or become configs of the coordinators' topics."""

from sluice.broker.controller.configs.resource import TOPIC
from sluice.protocol.apis.describe_topic_partitions import Cursor, DescribeTopicPartitionsRequest, TopicRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from tools.differential.case import Layout, case
from tools.differential.cases.descriptions import describe
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
_GROUP, _TRANSACTION = 0, 1  # types of coordinators


@case(LIMITED)
def describe_partitions_in_pages(session: Session) -> None:
    session.create_topic("limits-pages", 3)
    for limit in (1, 2, 9999):
        for cursor in (None, Cursor(topic_name="limits-pages", partition_index=1)):
            request = DescribeTopicPartitionsRequest(
                topics=[TopicRequest(name="limits-pages")], response_partition_limit=limit, cursor=cursor
            )
            session.call(request)


@case(LIMITED)
def describe_the_topics_of_coordinators(session: Session) -> None:
    for kind, name in ((_GROUP, "__consumer_offsets"), (_TRANSACTION, "__transaction_state")):
        session.request(FindCoordinatorRequest(key_type=kind, coordinator_keys=["limits"]))
        session.wait_for_leaders(name)
        describe(session, TOPIC, name)
