"""Requests between brokers, as calls in one process.

As in Kafka, a call without a response ends when the other broker stops or after `request.timeout.ms`
(AddPartitionsToTxnManager, InterBrokerSendThread).
"""

from collections.abc import Callable

from sluice.protocol.errors import ErrorCode
from sluice.purgatory.operation import DelayedOperation

from .broker_node import BrokerNode
from .cluster import Cluster

REQUEST_TIMEOUT_MS = 30_000


def reaches(broker: BrokerNode, other: BrokerNode) -> bool:
    controller = Cluster.controller.if_made(broker.cluster)
    if other is broker or controller is None:
        return True
    return controller.is_running(broker.node_id) and controller.is_running(other.node_id)


def send_request(
    broker: BrokerNode,
    other: BrokerNode,
    request: Callable[[Callable[[ErrorCode], None]], None],
    done: Callable[[ErrorCode], None],
) -> None:
    """Call `request(respond)` on the other broker, then `done` with its response, or NETWORK_EXCEPTION."""
    pending = _PendingRequest(broker, other, done)
    if reaches(broker, other):
        request(pending.respond)
        if not pending.completed:
            broker.replicas.produces.try_complete_else_watch(pending, [other])
    else:
        pending.force_complete()


class _PendingRequest(DelayedOperation):
    __slots__ = ("_broker", "_code", "_done", "_other")

    def __init__(self, broker: BrokerNode, other: BrokerNode, done: Callable[[ErrorCode], None]) -> None:
        super().__init__(REQUEST_TIMEOUT_MS)
        self._code = ErrorCode.NETWORK_EXCEPTION
        self._broker = broker
        self._other = other
        self._done = done

    def respond(self, code: ErrorCode) -> None:
        if not self.completed and reaches(self._broker, self._other):
            self._code = code
            self.force_complete()

    def try_complete(self) -> bool:
        controller = Cluster.controller.if_made(self._broker.cluster)
        return controller is not None and controller.has_stopped(self._other.node_id) and self.force_complete()

    def on_complete(self) -> None:
        self._done(self._code)
