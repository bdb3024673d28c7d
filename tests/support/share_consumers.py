"""Share consumers for tests: ShareFetch and ShareAcknowledge of one member, without group membership."""

from collections.abc import Iterable, Mapping
from typing import Any

from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis.share_acknowledge import AcknowledgePartition, AcknowledgeTopic, ShareAcknowledgeRequest
from sluice.protocol.apis.share_fetch import (
    AcknowledgementBatch,
    FetchPartition,
    FetchTopic,
    PartitionData,
    ShareFetchRequest,
)
from tests.support.records import batch, produce
from tests.support.virtual_broker import VirtualBroker

# Internal topics with one partition each.
ONE_PARTITION = ("offsets.topic.num.partitions=1", "share.coordinator.state.topic.num.partitions=1")
ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
Acknowledgement = tuple[int, int, list[int]]  # first and last offset, types


def initialize(broker: VirtualBroker, topic: Topic, group_id: str = "group", start_offset: int = 0) -> None:
    """Initialize the share state of all partitions, as the group coordinator does."""
    results: list[Any] = []
    offsets = {topic.topic_id: {partition.index: start_offset for partition in topic.partitions}}
    broker.broker.share_persister.initialize_state(group_id, offsets, 0, results.append)
    broker.broker.actions.complete()
    broker.settle()
    assert not any(results[0][topic.topic_id].values())


def produce_values(broker: VirtualBroker, *values: bytes, topic: str = "t", partition: int = 0) -> None:
    records = batch(*values)
    leader = broker.partition(topic, partition).leader
    response = broker.client("producer", node_id=leader).call(produce(9, records, topic=topic, partition=partition), 9)
    assert not response.responses[0].partition_responses[0].error_code


class ShareConsumer:
    """The requests of one member for the partitions of one topic."""

    def __init__(self, broker: VirtualBroker, topic: Topic, member_id: str = "member", group_id: str = "group") -> None:
        self.broker = broker
        self.topic = topic
        self.group_id = group_id
        self.member_id = member_id
        self.epoch = 0
        self.client = broker.client(member_id)

    def request(
        self, *acknowledgements: Acknowledgement, partitions: Iterable[int] = (0,), **fields: Any
    ) -> ShareFetchRequest:
        """Return the next request of the session; the first one names the partitions."""
        named = [
            FetchPartition(
                partition_index=index, acknowledgement_batches=[AcknowledgementBatch(*one) for one in acknowledgements]
            )
            for index in (partitions if acknowledgements or not self.epoch else ())
        ]
        topics = [FetchTopic(topic_id=self.topic.topic_id, partitions=named)] if named else []
        known: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "share_session_epoch": self.epoch,
            "min_bytes": 1,
            "max_bytes": 1_000_000,
            "max_records": 500,
            "batch_size": 500,
            "topics": topics,
        }
        self.epoch += 1
        return ShareFetchRequest(**(known | fields))

    def topics(self, acknowledgements: Mapping[int, Iterable[Acknowledgement]]) -> list[FetchTopic]:
        """Return the topics of a request with acknowledgements by partition."""
        partitions = [
            FetchPartition(partition_index=index, acknowledgement_batches=[AcknowledgementBatch(*one) for one in some])
            for index, some in acknowledgements.items()
        ]
        return [FetchTopic(topic_id=self.topic.topic_id, partitions=partitions)]

    def fetch(self, *acknowledgements: Acknowledgement, **fields: Any) -> Any:
        return self.client.call(self.request(*acknowledgements, **fields), 2)

    def acquire(self, *acknowledgements: Acknowledgement, **fields: Any) -> list[tuple[int, int, int]]:
        """Fetch; return first and last offset, and delivery count, of the records acquired from the first partition."""
        return acquired(self.fetch(*acknowledgements, **fields))

    def acknowledge(self, *acknowledgements: Acknowledgement, **fields: Any) -> Any:
        one = AcknowledgePartition(acknowledgement_batches=[AcknowledgementBatch(*one) for one in acknowledgements])
        topics = [AcknowledgeTopic(topic_id=self.topic.topic_id, partitions=[one])] if acknowledgements else []
        known: dict[str, Any] = {
            "group_id": self.group_id,
            "member_id": self.member_id,
            "share_session_epoch": self.epoch,
            "topics": topics,
        }
        self.epoch += 1
        return self.client.call(ShareAcknowledgeRequest(**(known | fields)), 2)


def partition_data(response: Any) -> PartitionData:
    """Return the only partition of a response."""
    assert not response.error_code, response
    ((data,),) = [topic.partitions for topic in response.responses]
    assert isinstance(data, PartitionData)
    return data


def acquired(response: Any) -> list[tuple[int, int, int]]:
    assert not response.error_code, response
    if not response.responses:
        return []
    return [
        (one.first_offset, one.last_offset, one.delivery_count) for one in partition_data(response).acquired_records
    ]
