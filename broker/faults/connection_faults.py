"""The rules for connections: applied to new connections and to the listeners of brokers.

Client id, software, principal and age are unknown when a connection is accepted. A ShapedTransport checks them after
each read.
"""

from collections.abc import Callable
from functools import partial

from sluice.broker.network.connection import Connection
from sluice.broker.network.shaped_transport import shape_transport
from sluice.broker.network.socket_server import SocketServer

from .fault import ConnectionAction, Fault, RuleOwner
from .target import FaultTarget
from .undo import Undo


class ConnectionFaults:
    """The rules for connections in force, in the order of addition."""

    def __init__(self, owner: RuleOwner, target: FaultTarget) -> None:
        self._owner = owner
        self._target = target
        self._faults: dict[Fault, ConnectionAction] = {}

    def begin(self, fault: Fault) -> None:
        action = fault.action
        assert isinstance(action, ConnectionAction)
        self._faults[fault] = action
        for node_id in fault.nodes(self._target):
            server = self._target.servers[node_id]
            self._listen(fault, action, server)
            if action.HITS_OPEN:
                for connection in [*server.connections]:
                    self._apply(fault, action, server, connection)

    def end(self, fault: Fault) -> None:
        self._faults.pop(fault, None)

    def started(self, server: SocketServer) -> None:
        for fault, action in [*self._faults.items()]:
            if fault.match.hits_broker(server.broker.node_id):
                self._listen(fault, action, server)

    def connected(self, server: SocketServer, connection: Connection) -> None:
        for fault, action in [*self._faults.items()]:
            self._apply(fault, action, server, connection)

    def lost(self, connection: Connection) -> None:
        for fault in self._faults:
            fault.undo.pop(connection, None)

    def _listen(self, fault: Fault, action: ConnectionAction, server: SocketServer) -> None:
        undo = self._run(
            fault, partial(action.on_listen, fault, server, partial(self._matches_at_accept, fault, server))
        )
        if undo is not None:
            fault.undo[server] = undo

    def _matches_at_accept(self, fault: Fault, server: SocketServer, listener: str) -> bool:
        if fault.is_over or not fault.match.hits_listener(listener) or not fault.should_fire(self._owner.now_ms):
            return False
        node_id = server.broker.node_id
        fault.count(node_id)
        self._owner.record_broker_hit(node_id, fault)
        return True

    def _apply(self, fault: Fault, action: ConnectionAction, server: SocketServer, connection: Connection) -> None:
        listener = connection.advertised.name
        if not (fault.match.hits_broker(server.broker.node_id) and fault.match.hits_listener(listener)):
            return
        if not action.applies_to_listener(server, listener):
            return
        if fault.match.names_client or fault.match.needs_age:
            self._hit_on_match(fault, action, server, connection)
        else:
            self._hit(fault, action, server, connection)

    def _hit_on_match(
        self, fault: Fault, action: ConnectionAction, server: SocketServer, connection: Connection
    ) -> None:
        transport = shape_transport(connection, server.broker)
        if transport is None:
            return

        def poll() -> None:
            if fault.is_over:
                transport.on_read.remove(poll)
            elif fault.matches_connection(connection, self._owner.now_ms):
                transport.on_read.remove(poll)
                self._hit(fault, action, server, connection)

        transport.on_read.append(poll)
        poll()

    def _hit(self, fault: Fault, action: ConnectionAction, server: SocketServer, connection: Connection) -> None:
        if connection.closed or fault.is_over or not fault.should_fire(self._owner.now_ms):
            return
        if not action.REPORTS_HITS:
            fault.hit_connection(server.broker.node_id, connection)
        undo = self._run(fault, partial(action.on_connected, fault, server, connection))
        if undo is not None and not connection.closed:
            fault.undo[connection] = undo

    def _run(self, fault: Fault, act: Callable[[], Undo | None]) -> Undo | None:
        try:
            return act()
        except Exception as error:
            fault.disable(error)
            return None
