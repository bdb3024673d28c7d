"""Fetch responses of the upstream, as quotas and fault rules change them."""

from collections.abc import Callable, Iterable

from sluice.broker.exchange.response_cache import Encoded
from sluice.broker.replica.fetch_session import NO_SESSION
from sluice.broker.requests.context import FetchOutcome
from sluice.protocol.apis.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from sluice.protocol.apis.share_fetch import ShareFetchResponse
from sluice.protocol.entities import Topics, name_of
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .fetch_sessions import PartitionKey


class ForwardedFetch(FetchOutcome):
    """The response to a Fetch, which a quota may replace by an empty one (KIP-219)."""

    __slots__ = ("_opens_session", "_response", "response")

    def __init__(
        self, response: FetchResponse | ShareFetchResponse, kept: Encoded | None, *, opens_session: bool
    ) -> None:
        """`kept`: the response as it was received, if it is sent on like that."""
        self.response: Message = response if kept is None else kept  # type: ignore[assignment]  # encoded alike
        self._response = response
        self._opens_session = opens_session

    @property
    def read_bytes(self) -> int:
        return sum(
            len(partition.records or b"") for topic in self._response.responses for partition in topic.partitions
        )

    def sent(self) -> bool:
        return False

    def throttled(self, throttle_time_ms: int) -> Message:
        response = self._response
        throttle_time_ms = max(throttle_time_ms, response.throttle_time_ms)
        if isinstance(response, ShareFetchResponse):
            return ShareFetchResponse(throttle_time_ms=throttle_time_ms)
        # A session that the upstream has opened stays unused; the epoch of an open one counts, as in Kafka.
        session_id = NO_SESSION if self._opens_session else response.session_id
        return FetchResponse(throttle_time_ms=throttle_time_ms, session_id=session_id)


def fail_partitions(
    response: FetchResponse,
    fetched: Iterable[PartitionKey],
    error_of: Callable[[str, int], ErrorCode | None],
    topics_by_id: Topics,
) -> ErrorCode | None:
    """Report errors for partitions of a Fetch, without their records; return the first error.

    The upstream omits partitions of a session without news, so they are added. It reads their records again, because
    the client's next request has the same offset.
    """
    topics = {topic.topic or topic.topic_id: topic for topic in response.responses}
    first: ErrorCode | None = None
    for key, index in fetched:
        code = error_of(key if isinstance(key, str) else name_of(key, topics_by_id), index)
        if code is None:
            continue
        first = first or code
        topic = topics.get(key)
        if topic is None:
            topic = topics[key] = FetchableTopicResponse()
            if isinstance(key, str):
                topic.topic = key
            else:
                topic.topic_id = key
            response.responses.append(topic)
        failed = PartitionData(
            partition_index=index, error_code=code, high_watermark=-1, aborted_transactions=None, records=b""
        )
        topic.partitions = [*(each for each in topic.partitions if each.partition_index != index), failed]
    return first
