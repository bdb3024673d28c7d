"""The connection of a request, as used by the packages above the network."""

from collections.abc import Callable
from typing import Protocol

from sluice.config.broker_config import Endpoint
from sluice.protocol.frame import FramePool

from .trace import ReadTimes


class Channel(Protocol):
    """`network.connection.Connection` without asyncio."""

    advertised: Endpoint  # the address advertised to the client
    peer: str  # "host:port" of the client
    number: int  # in the journal
    opened_ms: float  # monotonic, like `read_ms`
    read_ms: float  # time of the last read
    started_ms: float  # start of the handling of its requests
    read_times: ReadTimes | None  # shared by the journal entries of one read, until their responses are sent
    request_memory: FramePool
    close_reason: str
    owed: int  # responses that come later although the connection is not parked: a proxy's
    sent_ahead: int  # bytes of the next response that the client has already, if it has the whole one
    on_sent: Callable[[], None] | None  # called when the client has read its responses (`is_sending`)

    @property
    def waiting(self) -> bool:
        """Whether a request is parked, or the connection is muted."""

    @property
    def closed(self) -> bool: ...

    @property
    def ended_by_client(self) -> bool: ...

    @property
    def is_sending(self) -> bool:
        """Whether responses wait until the client reads."""

    def park(self, cancel: Callable[[], object], on_frame: Callable[[memoryview], object] | None = None) -> None:
        """Stop handling requests until `resume`; a disconnect calls `cancel`, and the next request `on_frame`."""

    def unpark(self) -> None:
        """Continue with the parked request; `resume` follows when it is over."""

    def close_on_eof(self) -> None:
        """Close when the client ends its side, as the parked request gets no response."""

    def mute(self, cancel: Callable[[], object]) -> None:
        """Park, and stop reading, so that TCP pushes back (KIP-219)."""

    def hold_frame(self) -> None:
        """Keep the bytes of a request above `SCRATCH_BYTES` until `release_frame`."""

    def release_frame(self) -> None: ...

    def resume(self) -> None: ...

    def answered(self) -> None:
        """End a half-closed connection that owes no response any more."""

    def send(self, head: bytes, body: list[bytes | memoryview], size: int) -> None:
        """Queue one response frame of `size` bytes."""

    def join_responses(self) -> None:
        """Join the next responses, which come together, until `send_joined`."""

    def send_joined(self) -> None: ...

    def close(self, reason: str) -> None:
        """Close without waiting for unsent responses, and log the reason."""

    def abort(self) -> None:
        """Flush the responses, discard unhandled requests, and close without a log line."""

    def reset(self, reason: str) -> None:
        """Close by a TCP reset; the client loses what it has not read."""

    def fail(self) -> None:
        """Close and log the current exception, an internal error."""
