"""A request and its outcome (Kafka's ClientRequest and its builder, InFlightRequest and ClientResponse)."""

from collections.abc import Callable

from sluice.client.errors import DisconnectException, KafkaException, TimeoutException
from sluice.protocol.apis import API_KEYS, Api, api_of
from sluice.protocol.message import Message

Build = Callable[[int], Message]


class Request:
    def __init__(
        self,
        api_key: int,
        build: Build,
        *,
        oldest: int | None = None,
        latest: int | None = None,
        timeout_ms: int | None = None,
        expects_response: bool = True,
    ) -> None:
        """Store the request.

        Args:
            api_key: The API.
            build: Returns the message for a version, or raises UnsupportedVersionException.
            oldest: First usable version.
            latest: Last usable version; by default the latest stable one.
            timeout_ms: Used instead of `request.timeout.ms`.
            expects_response: False for Produce with `acks=0`.
        """
        self.api: Api = API_KEYS[api_key]
        self.build = build
        self.oldest = self.api.min_version if oldest is None else oldest
        self.latest = _latest_stable(self.api) if latest is None else latest
        self.timeout_ms = timeout_ms
        self.expects_response = expects_response


def request_of(
    message: Message, *, oldest: int | None = None, latest: int | None = None, timeout_ms: int | None = None
) -> Request:
    api = api_of(type(message))
    return Request(api.key, lambda _version: message, oldest=oldest, latest=latest, timeout_ms=timeout_ms)


def _latest_stable(api: Api) -> int:
    return api.max_version - 1 if api.latest_unstable else api.max_version


class Exchange:
    """One sent request and its outcome: a `response`, one of three failures, or neither with `acks=0`."""

    def __init__(
        self, node_id: int, request: Request, on_complete: "OnComplete", now_ms: float, timeout_ms: int
    ) -> None:
        self.node_id = node_id
        self.request = request
        self.api = request.api
        self.on_complete = on_complete
        self.created_ms = self.sent_ms = self.received_ms = now_ms
        self.timeout_ms = timeout_ms
        self.version = request.latest
        self.correlation_id = 0
        self.throttled_ms = 0  # while in flight; extends the timeout
        self.response: Message | None = None
        self.disconnected = False
        self.timed_out = False  # implies `disconnected`
        self.error: KafkaException | None = None  # not sent: no common version

    @property
    def expires_ms(self) -> float:
        """The time of the timeout; 1 ms later, because Kafka compares whole milliseconds with >."""
        return self.sent_ms + self.timeout_ms + self.throttled_ms + 1

    def failure(self) -> KafkaException | None:
        """Return the reason for a missing response, if any."""
        if self.timed_out:
            return TimeoutException(f"{self.api.name} to node {self.node_id}: no response within {self.timeout_ms} ms")
        if self.disconnected:
            return DisconnectException(f"node {self.node_id} disconnected before its response to {self.api.name}")
        return self.error


OnComplete = Callable[[Exchange], None]
