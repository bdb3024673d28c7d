"""A scripted group coordinator and its client, in virtual time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sluice.client.backoff import StaticBackoff
from sluice.client.config import consumer_config
from sluice.client.consumer.group.abstract_coordinator import GroupCoordinator
from sluice.client.consumer.metadata import ConsumerMetadata
from sluice.client.consumer.offset_reset import EARLIEST
from sluice.client.consumer.subscription_state import SubscriptionState
from sluice.client.network.asyncio_network import AsyncNetwork
from sluice.clock import LoopClock
from sluice.protocol.apis.find_coordinator import Coordinator, FindCoordinatorResponse
from tests.support.client_network import ReceivedRequest, ScriptedResponse, VirtualNetwork

REQUEST_MS = 2000


class Steps:
    """A backoff that shows its attempt: 100 ms after the first failure, 200 ms after the second."""

    def backoff(self, failures: int) -> int:
        return 100 * (failures + 1)


class GroupStage:
    """Brokers 1 and 2, topic t with a partition on each, and group g, whose coordinator is broker 1."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.network = VirtualNetwork(LoopClock(loop))
        self.one, self.two = (self.network.broker(node, f"{name}:9092") for node, name in ((1, "a"), (2, "b")))
        self.coordinator_is = 1
        for broker in (self.one, self.two):
            broker.topics["t"] = [1, 2]
            broker.responses["FindCoordinator"] = self.found
        given: dict[str, str | int] = {"bootstrap.servers": "a:9092", "request.timeout.ms": REQUEST_MS}
        self.config = consumer_config({**given, "group.id": "g", "reconnect.backoff.ms": 1})
        self.subscriptions = SubscriptionState(EARLIEST)
        self.metadata = ConsumerMetadata(
            StaticBackoff(100),
            300_000,
            self.subscriptions,
            equivalent_backoff=None,
            creates_topics=True,
            includes_internal=False,
        )
        client = self.network.client(self.config, self.metadata, max_in_flight=100)
        self.client = AsyncNetwork(client, loop, self.network)
        self.coordinator = GroupCoordinator("g", self.client, Steps())

    def found(self, request: ReceivedRequest) -> ScriptedResponse:
        """Set the coordinator."""
        node, host = self.coordinator_is, {1: "a", 2: "b"}[self.coordinator_is]
        return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=node, host=host, port=9092)])

    def deadline(self, ms: float = 60_000) -> float:
        return self.client.clock.monotonic_ms() + ms

    def request_times_ms(self, api: str) -> list[float]:
        return sorted(round(at) for broker in (self.one, self.two) for at in broker.request_times_ms(api))


@asynccontextmanager
async def group_stage() -> AsyncIterator[GroupStage]:
    stage = GroupStage()
    try:
        yield stage
    finally:
        await stage.client.close()
