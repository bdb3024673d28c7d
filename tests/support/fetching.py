"""Fetcher and OffsetFetcher without the consumer's coroutines, with two scripted brokers."""

from sluice.client.backoff import StaticBackoff
from sluice.client.config import consumer_config
from sluice.client.consumer.fetch.completed_fetch import FetchSettings
from sluice.client.consumer.fetch.fetcher import Fetcher, FetcherSettings
from sluice.client.consumer.fetch.offset_fetcher import OffsetFetcher
from sluice.client.consumer.metadata import ConsumerMetadata
from sluice.client.consumer.offset_reset import EARLIEST, OffsetReset
from sluice.client.consumer.record import ConsumerRecord
from sluice.client.consumer.subscription_state import FetchPosition, SubscriptionState
from sluice.client.metadata.cluster import NO_EPOCH, TopicPartition
from sluice.protocol.apis import list_offsets as api
from sluice.protocol.apis.fetch import FetchResponse
from sluice.protocol.records.build import build_batch
from sluice.protocol.records.record import Record
from tests.support.client_network import ReceivedRequest, VirtualNetwork

P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)
BACKOFF_MS = 100


def batch(first: int, *values: bytes, epoch: int = 0) -> bytes:
    """Return values from an offset on."""
    records = [Record(first + number, 0, None, value) for number, value in enumerate(values)]
    return build_batch(records, base_offset=first, partition_leader_epoch=epoch)


class Reading:
    """Topic t with partition 0 led by broker 1 and partition 1 led by broker 2; both return the same metadata."""

    def __init__(self, *, reset: OffsetReset = EARLIEST, read_committed: bool = False, rack: str = "") -> None:
        self.network = VirtualNetwork()
        self.one, self.two = (self.network.broker(node, f"{name}:9092") for node, name in ((1, "a"), (2, "b")))
        for broker in (self.one, self.two):
            broker.topics["t"] = [1, 2]
            broker.responses["Fetch"] = lambda _: FetchResponse()
            broker.responses["ListOffsets"] = lambda request: offsets(request, 5)
        config = consumer_config({"bootstrap.servers": "a:9092", "reconnect.backoff.ms": 0})
        self.subscriptions = SubscriptionState(reset)
        self.metadata = ConsumerMetadata(
            StaticBackoff(BACKOFF_MS),
            300_000,
            self.subscriptions,
            equivalent_backoff=None,
            creates_topics=True,
            includes_internal=False,
        )
        self.client = self.network.client(config, self.metadata, max_in_flight=100)
        reading = FetchSettings(checks_crcs=True, read_committed=read_committed)
        settings = FetcherSettings(1, 1000, 500, 1000, reading, rack)
        self.fetcher = Fetcher(settings, self.subscriptions, self.metadata, self.client)
        self.offsets = OffsetFetcher(
            self.subscriptions,
            self.metadata,
            self.client,
            self.fetcher,
            self.network.clock,
            StaticBackoff(BACKOFF_MS),
            read_committed=read_committed,
        )

    def assign(self, *partitions: TopicPartition) -> None:
        """Refresh the metadata and connect to the leaders."""
        self.subscriptions.assign(partitions)
        self.network.advance(5)
        for node in list(self.metadata.cluster.nodes.values()):
            self.client.ready(node, self.now_ms)
        self.network.advance(5)

    @property
    def now_ms(self) -> float:
        return self.network.clock.monotonic_ms()

    def seek(self, partition: TopicPartition, offset: int, epoch: int = NO_EPOCH) -> None:
        """Set a position, optionally with a validated leader epoch."""
        position = FetchPosition(offset, epoch, self.metadata.current_leader(partition))
        self.subscriptions.state_of(partition).seek_unvalidated(position)

    def fetch(self) -> float:
        until_ms = self.fetcher.send(self.now_ms)
        self.network.advance(1)
        return until_ms

    def collect(self, most: int = 100) -> list[ConsumerRecord]:
        return self.fetcher.collect(most)

    def look(self) -> float:
        """Send the requests that reset or validate positions."""
        until_ms = self.offsets.run_once(self.now_ms)
        self.network.advance(1)
        return until_ms

    def position(self, partition: TopicPartition) -> int | None:
        found = self.subscriptions.state_of(partition).position
        return None if found is None else found.offset


def offsets(request: ReceivedRequest, offset: int, code: int = 0) -> api.ListOffsetsResponse:
    """Return the same result for all requested partitions."""
    return api.ListOffsetsResponse(
        topics=[
            api.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    api.ListOffsetsPartitionResponse(
                        partition_index=one.partition_index, error_code=code, offset=-1 if code else offset
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.message.topics
        ]
    )
