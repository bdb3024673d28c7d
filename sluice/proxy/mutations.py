"""Controller mutations (KIP-599) in a proxy: partitions that a request creates or deletes, charged to its own quota.

As in Kafka's controller, topics are charged one after the other before they are changed. In versions whose clients know
THROTTLING_QUOTA_EXCEEDED, a topic fails if the token bucket is below 0, and only the others are forwarded. Different
from Kafka: a topic is charged before the cluster validates it; the charge is cancelled if the cluster rejects it.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol, cast

from sluice.broker.requests.context import Outcome, RequestContext, Wait
from sluice.broker.throttling.throttler import MUTATIONS_STRICT_SINCE, Throttler
from sluice.protocol.apis.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from sluice.protocol.apis.create_topics import CreateTopicsRequest, CreateTopicsResponse
from sluice.protocol.apis.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from sluice.protocol.entities import Topics, name_of
from sluice.protocol.error_codes import TOPIC
from sluice.protocol.error_response import level_of, merge, split
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

MUTATING = MUTATIONS_STRICT_SINCE.keys()
# Until the response reports the cluster's default number of partitions.
_AT_LEAST = 1

_Response = CreateTopicsResponse | CreatePartitionsResponse | DeleteTopicsResponse


class LookUp(Protocol):
    def __call__(
        self, names: list[str], ids: list[bytes], respond: Callable[[Mapping[str, int]], Message | Outcome]
    ) -> Wait:
        """Ask the cluster for topics; `respond` gets the number of partitions of those that exist."""


class Mutations:
    """The charges of one request, by topic."""

    def __init__(self, ctx: RequestContext, throttler: Throttler) -> None:
        self._ctx = ctx
        self._throttler = throttler
        self._request = Message()
        self._failed: Message | None = None  # the response to rejected topics
        self._charged: dict[str, int] = {}
        self.throttle_ms = 0

    def charge(self, request: Message, partitions: Mapping[str, int], topics_by_id: Topics) -> Message | None:
        """Charge a request, whose existing topics have `partitions`; return the rest to forward, None without any."""
        ctx, rejected = self._ctx, set[str]()
        quota = self._throttler.mutation_quota(ctx)
        assert quota is not None, "called only with a quota"
        for name, count in _mutations(request, partitions, topics_by_id):
            if count > 0 and quota.record(count):
                self._charged[name] = count
            elif count > 0:
                rejected.add(name)
        self.throttle_ms = quota.throttle_time_ms()
        self._request = request
        if not rejected:
            return request
        ctx.error_code = code = ErrorCode.THROTTLING_QUOTA_EXCEEDED
        level = level_of(ctx.route.api_key, ctx.version, TOPIC)
        assert level is not None  # of all three APIs
        parts = split(
            ctx.route.api_key, ctx.version, level, request, code, lambda each: each.topic in rejected, topics_by_id
        )
        assert parts is not None  # the request lists its topics
        self._failed = parts.failed
        return parts.rest

    def finish(self, response: Message | None, topics_by_id: Topics) -> Message:
        """Correct the charges by what the cluster did; return the response to all topics."""
        ctx, throttler = self._ctx, self._throttler
        if response is None:
            assert self._failed is not None  # all topics
            return self._failed
        mutation, session = throttler.controller.mutation, ctx.session
        for name, mutated in _results(cast("_Response", response), topics_by_id):
            charged = self._charged.get(name, 0)
            excess = charged if mutated == 0 else charged - mutated
            if charged and excess and mutation is not None and mutated >= 0:
                mutation.unrecord(session.user, session.client_id, excess, throttler.time.at(ctx.now_ms))
        if self._failed is not None:
            level = level_of(ctx.route.api_key, ctx.version, TOPIC)
            assert level is not None
            merge(level, self._request, response, self._failed)
        return response


def look_up_and_charge(
    mutations: Mutations,
    request: Message,
    topics_by_id: Topics,
    look_up: LookUp,
    forward: Callable[[Message | None], Message | Outcome],
) -> Message | Outcome:
    """Charge a request, for which the cluster may have to be asked for topics; forward the rest."""
    names, ids = list[str](), list[bytes]()
    if isinstance(request, CreatePartitionsRequest):
        names = [topic.name for topic in request.topics]
    elif isinstance(request, DeleteTopicsRequest):
        names = [*request.topic_names, *(each.name for each in request.topics if each.name is not None)]
        ids = [each.topic_id for each in request.topics if each.name is None]
    if not names and not ids:
        return forward(mutations.charge(request, {}, topics_by_id))
    return look_up(names, ids, lambda found: forward(mutations.charge(request, found, topics_by_id)))


def _mutations(request: Message, partitions: Mapping[str, int], topics_by_id: Topics) -> Iterator[tuple[str, int]]:
    if isinstance(request, CreateTopicsRequest):
        for topic in request.topics:
            yield topic.name, len(topic.assignments) or max(topic.num_partitions, _AT_LEAST)
    elif isinstance(request, CreatePartitionsRequest):
        for added in request.topics:
            yield added.name, added.count - partitions.get(added.name, added.count)
    elif isinstance(request, DeleteTopicsRequest):
        named = [each.name or name_of(each.topic_id, topics_by_id) for each in request.topics]
        for name in (*request.topic_names, *named):
            yield name, partitions.get(name, 0)


def _results(response: _Response, topics_by_id: Topics) -> Iterator[tuple[str, int]]:
    """Yield topics with their changed partitions: 0 if the cluster rejected the change, -1 if the number is unknown."""
    if isinstance(response, CreateTopicsResponse):
        for topic in response.topics:
            yield topic.name, 0 if topic.error_code else topic.num_partitions
    elif isinstance(response, CreatePartitionsResponse):
        for added in response.results:
            yield added.name, 0 if added.error_code else -1
    else:
        for deleted in response.responses:
            name = deleted.name or name_of(deleted.topic_id, topics_by_id)
            yield name, 0 if deleted.error_code else -1
