"""Metadata requests of the NetworkClient (Kafka's DefaultMetadataUpdater).

They go to the least loaded node, one at a time. If `metadata.recovery.strategy` allows it, the client restarts from
`bootstrap.servers` when no node can be reached, when metadata is overdue for too long, or after REBOOTSTRAP_REQUIRED
(KIP-899, KIP-1102).
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
    node: Node | None
    is_any_ready: bool  # some node is connected and ready, but may have too many requests in flight

    @property
    def is_hopeless(self) -> bool:
        return self.node is None and not self.is_any_ready


class Connections(Protocol):
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
    def __init__(self, connections: Connections, config: ClientConfig) -> None:
        self._connections = connections
        self._metadata = connections.metadata
        self._client_id = config.text("client.id")
        self._rebootstraps = config.text("metadata.recovery.strategy") == "rebootstrap"
        self._rebootstrap_trigger_ms = config.integer("metadata.recovery.rebootstrap.trigger.ms")
        self._pending_request: MetadataRequestAndVersion | None = None
        self._update_due_since_ms = inf

    def is_due(self, now_ms: float) -> bool:
        return self._pending_request is None and self._metadata.time_to_next_update_ms(now_ms) <= 0

    def update(self, now_ms: float) -> float:
        if not self._rebootstraps:
            return self._request_if_due(now_ms)
        if now_ms - self._update_due_since_ms > self._rebootstrap_trigger_ms:
            self._leave_all_nodes()
            self._rebootstrap(now_ms)
        delay_ms = self._request_if_due(now_ms)
        return min(delay_ms, self._update_due_since_ms + self._rebootstrap_trigger_ms + 1 - now_ms)

    def disconnected(self, now_ms: float) -> None:
        """Request an update after a lost connection; one that was due has failed."""
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
            # Kafka checks every `reconnect.backoff.ms`.
            states = self._connections.states
            return min(states.poll_delay_ms(node_id, now_ms) for node_id in self._metadata.cluster.nodes)
        return self._send_request(least_loaded.node, now_ms)

    def _send_request(self, node: Node, now_ms: float) -> float:
        connections = self._connections
        if connections.can_send(node.id, now_ms):
            self._pending_request = self._metadata.next_request(now_ms)
            connections.send(node.id, request_of(self._pending_request.request), self._handle_response, now_ms)
            return connections.request_timeout_ms
        # Do not open a second connection while one is being set up.
        is_any_connecting = any(map(connections.states.is_connecting, self._metadata.cluster.nodes))
        if not is_any_connecting and connections.states.can_connect(node.id, now_ms):
            connections.initiate_connect(node, now_ms)
        return inf  # an event of the connection triggers the next check

    def _handle_response(self, exchange: Exchange) -> None:
        request, self._pending_request = self._pending_request, None
        now_ms, response = exchange.received_ms, exchange.response
        if not isinstance(response, MetadataResponse):
            if exchange.error is not None:
                self._metadata.fatal_error(exchange.error)
            self._metadata.failed_update(now_ms)
        elif self._rebootstraps and response.error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._update_due_since_ms = -inf
        elif not response.brokers:  # the broker is starting
            self._metadata.failed_update(now_ms)
        else:
            assert request is not None, "a Metadata response without a request"
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
