"""Actions on connections: refused, silent, stalled in a handshake, slow, or dropped without an end."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import msgspec

from sluice.broker.faults.fault import ConnectionAction, Fault
from sluice.broker.faults.matching.values import (
    Duration,
    Rate,
    RuleProblem,
    parse_bytes_per_s,
    parse_ms,
    parse_positive_ms,
)
from sluice.broker.faults.target import TargetInfo
from sluice.broker.faults.undo import Undo, undo_all

from .stalled_sasl import StalledSasl

if TYPE_CHECKING:
    from sluice.broker.network.connection import Connection
    from sluice.broker.network.shaped_transport import ShapedTransport
    from sluice.broker.network.socket_server import SocketServer

_OF_CLIENTS = frozenset(
    {
        "client_id",
        "software_name",
        "software_version",
        "principal",
        "connection_older_than",
        "connection_younger_than",
    }
)
_COUNTED = ("probability", "times", "on", "schedule")


class AcceptAction(ConnectionAction, frozen=True):
    """Acts on clients when they are accepted, before TLS and any request."""

    def applies_to_listener(self, server: "SocketServer", listener: str) -> bool:
        return not server.listeners[listener].is_tls  # clients of TLS listeners were hit at accept

    def on_listen(self, fault: Fault, server: "SocketServer", hits: Callable[[str], bool]) -> Undo | None:
        held: dict[ShapedTransport, None] = {}

        def on_accept(listener: str, transport: "ShapedTransport") -> None:
            if not transport.is_closing() and hits(listener) and self.accepted(fault, transport):
                held[transport] = None
                transport.on_lost.append(partial(held.pop, transport, None))

        def undo() -> None:
            server.accept_hooks.remove(on_accept)
            for transport in [*held]:
                transport.release()

        server.accept_hooks.append(on_accept)
        return undo

    def accepted(self, fault: Fault, transport: "ShapedTransport") -> bool:
        """Act on an accepted socket; return whether to release its transport when the rule ends."""
        transport.hold()
        return True


class RefuseConnections(AcceptAction, frozen=True, tag="refuse-connections"):
    """Refuses new connections; open ones are not affected."""

    how: Annotated[
        Literal["closed-port", "rst", "fin"],
        msgspec.Meta(
            description="closed-port: as if no process listened; rst, fin: accepted, and reset or closed at once"
        ),
    ] = "closed-port"

    def check_target(self, fault: Fault, target: TargetInfo) -> None:
        super().check_target(fault, target)
        if self.how == "closed-port":
            for name in _COUNTED:
                if getattr(fault.rule, name) is not None:
                    problem = "a closed port refuses all connections and cannot count them. Use how = rst or fin"
                    raise RuleProblem(name, problem)

    def applies_to_listener(self, server: "SocketServer", listener: str) -> bool:
        return self.how != "closed-port" and super().applies_to_listener(server, listener)

    def on_listen(self, fault: Fault, server: "SocketServer", hits: Callable[[str], bool]) -> Undo | None:
        if self.how != "closed-port":
            return super().on_listen(fault, server, hits)
        return undo_all(server.refuse(name) for name in server.listeners if hits(name))

    def accepted(self, fault: Fault, transport: "ShapedTransport") -> bool:
        if self.how == "rst":
            transport.reset()
        else:
            transport.close()
        return False

    def on_connected(self, fault: Fault, server: "SocketServer", connection: "Connection") -> Undo | None:
        reason = f"fault rule {fault.id}"
        if self.how == "rst":
            connection.reset(reason)
        else:
            connection.close(reason)
        return None


class SilentConnections(AcceptAction, frozen=True, tag="silent-connections"):
    """Accepts new connections, but does not read them until the rule ends."""

    def on_connected(self, fault: Fault, server: "SocketServer", connection: "Connection") -> Undo | None:
        transport = _shaped(server, connection)
        transport.hold()
        return transport.release


class StallTls(AcceptAction, frozen=True, tag="stall-tls"):
    """Leaves TLS handshakes of new connections unanswered until the rule ends."""

    LAYER: ClassVar[str] = "SSL"

    def applies_to_listener(self, server: "SocketServer", listener: str) -> bool:
        return False


class StallSasl(ConnectionAction, frozen=True, tag="stall-sasl"):
    """Leaves SASL exchanges unanswered until the rule ends; earlier requests are answered."""

    LAYER: ClassVar[str] = "SASL"

    at: Annotated[
        Literal["handshake", "authenticate"],
        msgspec.Meta(description="the first unanswered request: SaslHandshake, or the one after it"),
    ] = "authenticate"

    def applies_to_listener(self, server: "SocketServer", listener: str) -> bool:
        return server.exchange.passes_sasl or server.broker.config.security_protocol(listener).startswith("SASL_")

    def on_connected(self, fault: Fault, server: "SocketServer", connection: "Connection") -> Undo | None:
        stalled = StalledSasl(connection, self.at)
        connection.request_handler = stalled
        return stalled.resume


class Bandwidth(ConnectionAction, frozen=True, tag="bandwidth"):
    """Limits the bytes per second of each connection."""

    FIELDS: ClassVar[frozenset[str]] = ConnectionAction.FIELDS | _OF_CLIENTS
    HITS_OPEN: ClassVar[bool] = True

    in_bytes_per_s: Annotated[Rate | None, msgspec.Meta(description="from the client: 50000, 50k, 1M, 64Ki")] = None
    out_bytes_per_s: Annotated[Rate | None, msgspec.Meta(description="to the client")] = None

    def check_target(self, fault: Fault, target: TargetInfo) -> None:
        if self.in_bytes_per_s is None and self.out_bytes_per_s is None:
            raise RuleProblem("action", "expected in_bytes_per_s, out_bytes_per_s or both")
        _ = self._in, self._out
        super().check_target(fault, target)

    def on_connected(self, fault: Fault, server: "SocketServer", connection: "Connection") -> Undo | None:
        return _shaped(server, connection).limit(self._in, self._out)

    @property
    def _in(self) -> float | None:
        return parse_bytes_per_s(self.in_bytes_per_s, "action.in_bytes_per_s")

    @property
    def _out(self) -> float | None:
        return parse_bytes_per_s(self.out_bytes_per_s, "action.out_bytes_per_s")


class DropIdle(ConnectionAction, frozen=True, tag="drop-idle"):
    """Drops idle connections like a middlebox: neither side is notified."""

    FIELDS: ClassVar[frozenset[str]] = ConnectionAction.FIELDS | _OF_CLIENTS
    HITS_OPEN: ClassVar[bool] = True
    REPORTS_HITS: ClassVar[bool] = True

    idle: Annotated[Duration, msgspec.Meta(description="time without traffic in either direction")]

    def check_target(self, fault: Fault, target: TargetInfo) -> None:
        parse_positive_ms(self.idle, "action.idle")
        super().check_target(fault, target)

    def on_connected(self, fault: Fault, server: "SocketServer", connection: "Connection") -> Undo | None:
        transport, idle_ms = _shaped(server, connection), parse_ms(self.idle, "action.idle")
        return transport.drop_when_idle(idle_ms, partial(fault.hit_connection, server.broker.node_id, connection))


def _shaped(server: "SocketServer", connection: "Connection") -> "ShapedTransport":
    from sluice.broker.network.shaped_transport import shape_transport

    transport = shape_transport(connection, server.broker)
    assert transport is not None, "the connection is open"
    return transport
