"""Who asks the cluster for metadata when it is due, and whom: Kafka's DefaultMetadataUpdater of its NetworkClient.

It is asked over the least loaded node, one request at a time. Where no node is known that could be reached, or none has
answered for too long, or the broker wants it (REBOOTSTRAP_REQUIRED), the client begins again with `bootstrap.servers`
(KIP-899, KIP-1102), if `metadata.recovery.strategy` has it so.
"""

import logging
from math import inf
from typing import NamedTuple, Protocol

from sluice.client.config import ClientConfig
from sluice.client.metadata.cluster import Node
from sluice.client.metadata.metadata import Metadata, MetadataRequestAndVersion
from sluice.protocol.apis.metadata import MetadataResponse
from sluice.protocol.errors import ErrorCode

from .connection_states import ClusterConnectionStates
from .in_flight import Exchange, OnComplete, Request, request_of

log = logging.getLogger("sluice.client")


class LeastLoadedNode(NamedTuple):
    """Where to send what any node can answer."""

    node: Node | None
    is_any_ready: bool  # at least one connection could be used, if it were not for what is in flight

    @property
    def is_hopeless(self) -> bool:
        return self.node is None and not self.is_any_ready


class Connections(Protocol):
    """What is needed of the NetworkClient."""

    metadata: Metadata
    states: ClusterConnectionStates
    request_timeout_ms: int

    def least_loaded_node(self, now_ms: float) -> LeastLoadedNode: ...

    def can_send(self, node_id: int, now_ms: float) -> bool: ...

    def send(self, node_id: int, request: Request, on_complete: OnComplete, now_ms: float) -> Exchange: ...

    def initiate_connect(self, node: Node, now_ms: float) -> None: ...

    def disconnect(self, node_id: int) -> None: ...

    def wakeup(self) -> None: ...


class MetadataUpdater:
    """Keeps `metadata` as fresh as it wants to be."""

    def __init__(self, connections: Connections, config: ClientConfig) -> None:
        self._connections = connections
        self._metadata = connections.metadata
        self._client_id = config.text("client.id")
        self._rebootstraps = config.text("metadata.recovery.strategy") == "rebootstrap"
        self._rebootstrap_trigger_ms = config.integer("metadata.recovery.rebootstrap.trigger.ms")
        self._pending_request: MetadataRequestAndVersion | None = None  # while the answer is awaited
        self._update_due_since_ms = inf  # when it was due that no answer came to yet

    def is_due(self, now_ms: float) -> bool:
        """Whether metadata is to be asked for before anything else."""
        return self._pending_request is None and self._metadata.time_to_next_update_ms(now_ms) <= 0

    def update(self, now_ms: float) -> float:
        """Asks for metadata if it is due; returns how long until that is to be looked at again."""
        if not self._rebootstraps:
            return self._request_if_due(now_ms)
        if now_ms - self._update_due_since_ms > self._rebootstrap_trigger_ms:
            self._leave_all_nodes()
            self._rebootstrap(now_ms)
        delay_ms = self._request_if_due(now_ms)
        return min(delay_ms, self._update_due_since_ms + self._rebootstrap_trigger_ms + 1 - now_ms)

    def disconnected(self, now_ms: float) -> None:
        """A connection is lost. Metadata that was due could not be asked for over it, which is a failed attempt; and
        where a node is gone, what is known of it may be old.
        """
        if self.is_due(now_ms):
            self._metadata.failed_update(now_ms)
        self._metadata.request_update()

    def _request_if_due(self, now_ms: float) -> float:
        if self._pending_request is not None:
            return self._connections.request_timeout_ms
        delay_ms = self._metadata.time_to_next_update_ms(now_ms)
        if delay_ms > 0:
            return delay_ms
        self._update_due_since_ms = min(self._update_due_since_ms, now_ms)
        least_loaded = self._connections.least_loaded_node(now_ms)
        if self._rebootstraps and least_loaded.is_hopeless:
            self._rebootstrap(now_ms)
            least_loaded = self._connections.least_loaded_node(now_ms)
        if least_loaded.node is None:
            # Kafka looks again every `reconnect.backoff.ms`; here, when the first backoff or throttle is over.
            states = self._connections.states
            return min(states.poll_delay_ms(node_id, now_ms) for node_id in self._metadata.cluster.nodes)
        return self._send_request(least_loaded.node, now_ms)

    def _send_request(self, node: Node, now_ms: float) -> float:
        connections = self._connections
        if connections.can_send(node.id, now_ms):
            self._pending_request = self._metadata.next_request(now_ms)
            connections.send(node.id, request_of(self._pending_request.request), self._handle_response, now_ms)
            return connections.request_timeout_ms
        # No second connection is begun for this while there is one on its way.
        is_any_connecting = any(map(connections.states.is_connecting, self._metadata.cluster.nodes))
        if not is_any_connecting and connections.states.can_connect(node.id, now_ms):
            connections.initiate_connect(node, now_ms)
        return inf  # something will come of the connection, new or busy

    def _handle_response(self, exchange: Exchange) -> None:
        request, self._pending_request = self._pending_request, None
        now_ms, response = exchange.received_ms, exchange.response
        if not isinstance(response, MetadataResponse):
            if exchange.error is not None:
                self._metadata.fatal_error(exchange.error)
            self._metadata.failed_update(now_ms)
        elif self._rebootstraps and response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._update_due_since_ms = -inf
        elif not response.brokers:  # of a broker that is only starting
            self._metadata.failed_update(now_ms)
        else:
            assert request is not None, "metadata that nobody asked for"
            self._metadata.update(request, response, exchange.version, now_ms)
            self._update_due_since_ms = inf
        self._connections.wakeup()

    def _leave_all_nodes(self) -> None:
        for node_id in list(self._metadata.cluster.nodes):
            self._connections.disconnect(node_id)

    def _rebootstrap(self, now_ms: float) -> None:
        if not self._metadata.is_at_bootstrap:
            log.info("rebootstrap", extra={"client_id": self._client_id})
        self._metadata.rebootstrap()
        self._update_due_since_ms = now_ms
