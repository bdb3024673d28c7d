"""The connection to a group coordinator (that part of Kafka's AbstractCoordinator).

Its connection is separate: a fetch that waits must not delay a heartbeat.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf

from sluice.client.backoff import Backoff
from sluice.client.errors import DisconnectException, RetriableException, TimeoutException, error_name, raise_for
from sluice.client.metadata.cluster import Node
from sluice.client.network.asyncio_network import AsyncNetwork, Turns
from sluice.client.network.in_flight import Request
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

log = logging.getLogger("sluice.client")

_FIND_COORDINATOR, _FIRST_OF_MANY = 10, 4
_LARGEST_NODE_ID = 2**31 - 1
MOVED = frozenset({ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR})


class GroupCoordinator:
    def __init__(self, group_id: str, network: AsyncNetwork, backoff: Backoff) -> None:
        self.group_id = group_id
        self.node: Node | None = None
        self._network = network
        self._backoff = backoff
        # Requests that wait for a lookup or a connection are sent in the order of the calls. Otherwise, a commit that
        # waits would be sent after a later one with larger offsets.
        self._turns = Turns(network)

    def forget(self, reason: str) -> None:
        node, self.node = self.node, None
        if node is not None:
            log.info("coordinator unknown", extra={"group": self.group_id, "node": str(node), "reason": reason})
            self._network.client.disconnect(node.id)

    def check(self, code: int) -> None:
        if code in MOVED:
            self.forget(error_name(code))
        raise_for(code)

    async def ensure(self, deadline_ms: float = inf) -> Node:
        """Look up the coordinator if it is unknown."""
        async with self._turns.take(deadline_ms):
            return await self._looked_up(deadline_ms)

    async def send(self, request: Request, deadline_ms: float = inf) -> Message:
        """Return the coordinator's response; raise RetriableException if there is none."""
        async with self._turns.take(deadline_ms):
            node = await self._looked_up(deadline_ms)
            with self._forgetting(node):
                now_ms = await self._network.ready(node, request)
        with self._forgetting(node):
            return await self._network.send(node, request, now_ms)

    async def pause(self, ms: float, deadline_ms: float = inf) -> None:
        """Wait; raise TimeoutException at the deadline."""
        until_ms = self._network.clock.monotonic_ms() + ms
        while (now_ms := self._network.clock.monotonic_ms()) < until_ms:
            self._network.raise_if_closed()
            if now_ms >= deadline_ms:
                raise TimeoutException("the operation did not complete in time")
            await self._network.wait(min(until_ms, deadline_ms))

    @contextmanager
    def _forgetting(self, node: Node) -> Iterator[None]:
        """Forget a coordinator that does not respond."""
        try:
            yield
        except (DisconnectException, TimeoutException):
            if self.node == node:
                self.forget("no response")
            raise

    async def _looked_up(self, deadline_ms: float) -> Node:
        attempts = 0
        while self.node is None:
            try:
                node = await self._find_coordinator(deadline_ms)
            except RetriableException as error:
                log.info("coordinator lookup failed", extra={"group": self.group_id, "error": str(error)})
            else:
                now_ms = self._network.clock.monotonic_ms()
                if self._network.client.poll_delay_ms(node.id, now_ms) in (0, inf):
                    self.node = node
                    log.info("coordinator", extra={"group": self.group_id, "node": str(node)})
                    break  # a node in reconnect backoff is looked up again
            await self.pause(self._backoff.backoff(attempts), deadline_ms)
            attempts += 1
            await self._network.metadata_after(self._network.client.metadata.request_update(), deadline_ms)
        return self.node

    async def _find_coordinator(self, deadline_ms: float) -> Node:
        response = await self._network.request(await self._any_node(deadline_ms), self._request())
        assert isinstance(response, FindCoordinatorResponse), type(response).__name__
        if response.coordinators:
            found = response.coordinators[0]
            raise_for(found.error_code, found.error_message)
            return _own_connection(found.node_id, found.host, found.port)
        raise_for(response.error_code, response.error_message)
        return _own_connection(response.node_id, response.host, response.port)

    def _request(self) -> Request:
        def build(version: int) -> Message:
            if version < _FIRST_OF_MANY:
                return FindCoordinatorRequest(key=self.group_id)
            return FindCoordinatorRequest(coordinator_keys=[self.group_id])

        return Request(_FIND_COORDINATOR, build)

    async def _any_node(self, deadline_ms: float) -> Node:
        client, clock = self._network.client, self._network.clock
        while (now_ms := clock.monotonic_ms()) < deadline_ms:
            self._network.raise_if_closed()
            client.metadata.raise_fatal_error()
            node = client.least_loaded_node(now_ms).node
            if node is not None and client.ready(node, now_ms):
                return node
            if node is None:
                delays = [client.poll_delay_ms(one, now_ms) for one in client.metadata.cluster.nodes]
            else:
                error = client.authentication_error(node.id)
                if error is not None:
                    raise error
                delays = [client.poll_delay_ms(node.id, now_ms)]
            await self._network.wait(min(deadline_ms, now_ms + min(filter(None, delays), default=inf)))
        raise self._network.timeout("no node was ready in time")


def _own_connection(node_id: int, host: str, port: int) -> Node:
    return Node(_LARGEST_NODE_ID - node_id, host, port)
