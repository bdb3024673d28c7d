"""The connection of a request, as the parts above the network see it."""

from collections.abc import Callable
from typing import Protocol

from sluice.config.broker_config import Endpoint

from .trace import ReadTimes


class Channel(Protocol):
    """One client's connection: `network.connection.Connection`, without its asyncio side."""

    advertised: Endpoint  # the address that the client was told to connect to
    peer: str  # the client's address, "host:port"
    waiting: bool  # a request is parked, or the connection is muted
    closed: bool
    number: int  # in the journal
    opened_ms: float  # monotonic, as the next
    read_ms: float  # when bytes last came
    read_times: ReadTimes | None  # shared by the journal entries of one read, until their responses have left
    close_reason: str
    ended_by_client: bool

    def park(self, cancel: Callable[[], object]) -> None:
        """Handle no further request until `resume`. If the client disconnects, `cancel` is called."""

    def is_parked_by(self, cancel: Callable[[], object]) -> bool:
        """Return whether the request was parked with this `cancel`, and not again since."""

    def mute(self) -> None:
        """Stop reading at once, so that TCP pushes back (KIP-219)."""

    def resume(self) -> None:
        """Continue with the next request."""

    def send(self, head: bytes, body: list[bytes | memoryview], size: int) -> None:
        """Queue one whole response frame of `size` bytes."""

    def close(self, reason: str) -> None:
        """Close at once, without waiting for unsent responses, and log why."""

    def abort(self) -> None:
        """Close at once, without a log line."""

    def reset(self, reason: str) -> None:
        """Close at once by a TCP reset; data that the client has not read yet is lost."""

    def fail(self) -> None:
        """Close after an internal error, which is being handled, and log it."""
