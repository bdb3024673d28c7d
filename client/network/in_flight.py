"""A request, and what becomes of it: Kafka's ClientRequest and its builder, InFlightRequest and ClientResponse."""

from collections.abc import Callable

from sluice.client.errors import DisconnectException, KafkaException, TimeoutException
from sluice.protocol.apis import API_KEYS, Api
from sluice.protocol.message import Message

Build = Callable[[int], Message]


class Request:
    """What to send: a message as it is, or one that is made for the version that will be sent."""

    __slots__ = ("api", "build", "expects_response", "latest", "oldest", "timeout_ms")

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
        """`build(version)` may raise UnsupportedVersionException where a version cannot say what is meant.

        `oldest`, `latest`: versions that may be used, by default all that are stable. `timeout_ms`: if not
        `request.timeout.ms`.
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
    """A request whose message is the same in all versions."""
    api_key = getattr(message, "API_KEY", None)
    assert isinstance(api_key, int), f"{type(message).__name__} is no request"
    return Request(api_key, lambda _version: message, oldest=oldest, latest=latest, timeout_ms=timeout_ms)


def _latest_stable(api: Api) -> int:
    return api.max_version - 1 if api.latest_unstable else api.max_version


class Exchange:
    """One request on its way, and then how it ended: with a `response`, or with one of the three failures.

    `response` is None, without a failure, for a request that has no answer (`acks=0`) and was written.
    """

    __slots__ = (
        "api",
        "correlation_id",
        "created_ms",
        "disconnected",
        "error",
        "node_id",
        "on_complete",
        "received_ms",
        "request",
        "response",
        "sent_ms",
        "throttled_ms",
        "timed_out",
        "timeout_ms",
        "version",
    )

    def __init__(
        self,
        node_id: int,
        request: Request,
        on_complete: "OnComplete",
        now_ms: float,
        timeout_ms: int,
    ) -> None:
        self.node_id = node_id
        self.request = request
        self.api = request.api
        self.on_complete = on_complete
        self.created_ms = self.sent_ms = self.received_ms = now_ms
        self.timeout_ms = timeout_ms
        self.version = request.latest
        self.correlation_id = 0
        self.throttled_ms = 0  # while it was on its way: time that does not count
        self.response: Message | None = None
        self.disconnected = False
        self.timed_out = False  # then it is disconnected too
        self.error: KafkaException | None = None  # it was never sent: no version would do

    @property
    def expires_ms(self) -> float:
        """When it has taken too long: strictly more than the timeout, and clocks of Kafka count whole milliseconds."""
        return self.sent_ms + self.timeout_ms + self.throttled_ms + 1

    def failure(self) -> KafkaException | None:
        """Why there is no response, if there should be one."""
        if self.timed_out:
            return TimeoutException(
                f"{self.api.name} to node {self.node_id} was not answered within {self.timeout_ms} ms"
            )
        if self.disconnected:
            return DisconnectException(f"node {self.node_id} disconnected before it answered {self.api.name}")
        return self.error


OnComplete = Callable[[Exchange], None]
