"""The execution of one request that rules hit, and the base class of actions on requests.

    matching rules in the order of addition: before -> the request is handled -> after, for each hit
    -> quotas -> answering -> the journal -> leaving -> sent

`before` and `after` may park the request until the rule's wait is over. A response, or an end of the request, skips
further rules. A request parked before its handling has copies of its records, because the read buffer is reused.
"""

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from random import Random  # noqa: TID251  (the type of an argument)
from typing import ClassVar, Literal, NamedTuple, TypeVar

from msgspec import Struct, field

from sluice.broker.broker import Broker, Handle
from sluice.broker.exchange.routes import Routes
from sluice.broker.faults.fault import ALWAYS, CHANCE, SCHEDULE, TIME, Action, Fault, RuleOwner
from sluice.broker.requests.context import ENDED, NO_RESPONSE, FetchOutcome, Outcome, RequestContext, Wait
from sluice.broker.requests.delayed_request import DelayedRequest
from sluice.broker.throttling.verdict import HeldRead
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.error_response import ErrorLevel, ResponseItem, merge
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

NEVER_MS = 2.0**40  # longer than any client's timeout
Reply = Message | Outcome
CloseMethod = Literal["fin", "rst"]
_T = TypeVar("_T")

_CLIENT = frozenset({"client_id", "software_name", "software_version", "principal", "listener"})
_ENTITIES = frozenset({"topic", "partition", "group", "transactional_id"})
_OTHER = frozenset({"connection_older_than", "connection_younger_than", "request"})
_OF_REQUESTS = frozenset({"broker", "api", "version"}) | _CLIENT | _ENTITIES | _OTHER


class RuleHit(NamedTuple):
    fault: Fault
    action: "RequestAction"  # of the rule
    drawn: float  # the random number that the action drew for this hit


class ResponseFrame:
    """A response frame that actions may change before it is sent."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.copies = 1
        self.close: CloseMethod | None = None  # how to close the connection after the frame


class RequestAction(Action, frozen=True):
    FIELDS: ClassVar[frozenset[str]] = ALWAYS | _OF_REQUESTS | TIME | CHANCE | SCHEDULE

    def can_hit(self, api_key: int, version: int) -> bool:
        return True

    def draw(self, random: Random) -> float:
        """Draw a number for a request that is hit."""
        return 0.0

    def before(self, intercepted: "FaultExecution", hit: RuleHit) -> Reply | None:
        """Act before the request is handled; return None, or a response or a `Wait` to skip the handler."""
        return None

    def after(self, intercepted: "FaultExecution", hit: RuleHit, reply: Reply) -> Reply:
        """Act when the response is ready, before quotas charge it; return the response to send, or a `Wait`."""
        return reply

    # A request without a response skips the following calls.

    def answering(
        self, intercepted: "FaultExecution", hit: RuleHit, body: list[bytes | memoryview]
    ) -> list[bytes | memoryview]:
        """Return the encoded response to send, before the journal records it."""
        return body

    def leaving(self, intercepted: "FaultExecution", hit: RuleHit, frame: ResponseFrame) -> None:
        """Change the response frame, with size and header, before it is sent."""

    def sent(self, intercepted: "FaultExecution", hit: RuleHit) -> None:
        """Act when the response was sent."""


class _Wait(DelayedRequest):
    __slots__ = ("_fault", "_then")

    def __init__(self, ctx: RequestContext, fault: Fault, delay_ms: float, then: Callable[[], Reply]) -> None:
        super().__init__(ctx, delay_ms)
        self._fault = fault
        self._then = then

    def try_complete(self) -> bool:
        return self._fault.has_ended and self.force_complete()

    def _respond(self) -> Reply:
        return self._then()


class _SplitOffPart(NamedTuple):
    level: ErrorLevel
    request: Message
    failed: Message
    code: ErrorCode


class FaultExecution(Struct, eq=False):
    _owner: RuleOwner
    broker: Broker
    routes: Routes
    _handle: Handle
    ctx: RequestContext
    request: Message
    _pending: Iterator[RuleHit]  # lazy: each rule is matched after the previous ones acted on the request
    overwriting: set[Fault] = field(default_factory=set)  # rules that change the handler's response
    _failed_partitions: list[tuple[Fault, ErrorCode]] = field(default_factory=list)
    _hits: list[RuleHit] = field(default_factory=list)
    _finished: int = 0  # number of hits whose `after` was called
    _split_off: list[_SplitOffPart] = field(default_factory=list)
    _repeats: int = 0
    fetched: FetchOutcome | None = None  # what the handler of a Fetch has read
    _then_close: CloseMethod | None = None
    _mute: Wait | None = None

    # -- steps ---------------------------------------------------------------------------------------------------------

    def begin(self) -> Reply:
        for hit in self._pending:
            self._hits.append(hit)
            reply = self._act(hit, None, hit.action.before)
            if reply is not None:
                return reply if isinstance(reply, Wait) else self.after(reply)
        reply = self._handle(self.ctx, self.request, self.broker)
        return reply if _is_unfinished(reply) else self.after(reply)

    def after(self, outcome: Reply) -> Reply:
        while self._repeats:
            self._repeats -= 1
            self.ctx.error_code = 0
            self.fetched = None
            outcome = self._handle(self.ctx, self.request, self.broker)
            if _is_unfinished(outcome):
                return outcome
        if isinstance(outcome, FetchOutcome):
            self.fetched, outcome = outcome, outcome.response
        while self._split_off:
            outcome = self._merge_back(self._split_off.pop(), outcome)
        while self._finished < len(self._hits):
            hit = self._hits[self._finished]
            self._finished += 1
            outcome = self._act(hit, outcome, hit.action.after, outcome)
            if isinstance(outcome, Wait):
                break
        if self.fetched is None or isinstance(outcome, Outcome):
            return outcome
        self.fetched.response = outcome  # type: ignore[misc]  # a slot of the subclasses
        return self.fetched

    def answering(self, body: list[bytes | memoryview]) -> list[bytes | memoryview]:
        for hit in self._hits:
            body = self._act(hit, body, hit.action.answering, body)
        return body

    def leaving(self, frame: bytes) -> list[bytes]:
        changed = ResponseFrame(frame)
        for hit in self._hits:
            self._act(hit, None, hit.action.leaving, changed)
        self._then_close = changed.close
        return [changed.data] * changed.copies

    def sent(self) -> Wait | None:
        if self._then_close is not None:
            self.close(self._hits[-1].fault, self._then_close)
            return None
        for hit in self._hits:
            self._act(hit, None, hit.action.sent)
        return self._mute

    # -- called by actions ---------------------------------------------------------------------------------------------

    def wait_before(self, rule: Fault, delay_ms: float, *, is_held: bool = False) -> Wait:
        """Park the request before its handling; if it is held, the rule can release it."""
        self._copy_request()
        return self._wait(rule, delay_ms, self.begin, is_held=is_held)

    def wait_after(self, rule: Fault, delay_ms: float, reply: Reply, *, is_held: bool = False) -> Wait:
        """Park the request between its handling and its response; if it is held, the rule can release it."""
        return self._wait(rule, delay_ms, partial(self.after, reply), is_held=is_held)

    def close(self, rule: Fault, how: CloseMethod) -> Outcome:
        """Close the connection without a response."""
        reason = f"fault rule {rule.id}"
        if how == "rst":
            self.ctx.session.connection.reset(reason)
        else:
            self.ctx.session.connection.close(reason)
        return ENDED

    def repeat(self) -> None:
        """Handle the request twice; the first response is discarded."""
        self._copy_request()
        self._repeats += 1

    def mute(self, rule: Fault, delay_ms: float) -> None:
        """Mute the connection for a time after the response, unless a quota mutes it as well."""
        self._mute = self._wait(rule, delay_ms, lambda: ENDED, is_held=False)  # the response is sent
        self._mute.mutes = True

    def set_throttle_time(self, body: list[bytes | memoryview], throttle_ms: int) -> list[bytes | memoryview]:
        """Return the response with this throttle time; record it in the journal."""
        ctx, route = self.ctx, self.ctx.route
        view = memoryview(b"".join(body))
        answer, _ = decode_prefix(API_KEYS[route.api_key].response, route.version)(view, 0, len(view))
        answer.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]  # called only if the response has this field
        changed: list[bytes | memoryview] = []
        route.encode(answer, changed)
        self._owner.record_throttle_time(ctx, throttle_ms)
        return changed

    def split_off(self, level: ErrorLevel, rest: Message, failed: Message, code: ErrorCode) -> None:
        """Handle only `rest` of the request; `failed` is the response to the other part."""
        self._split_off.append(_SplitOffPart(level, self.request, failed, code))
        self.request = rest

    def request_without(self, level: ErrorLevel) -> Message:
        """Return the request without the level's items."""
        rest = copy(self.request)
        setattr(rest, level.steps[0].request_list, [])
        return rest

    def fail_partitions(self, rule: Fault, code: ErrorCode) -> None:
        """Return this error for fetched partitions that the rule matches."""
        self._failed_partitions.append((rule, code))

    def report_failure(self, reply: Reply) -> Reply:
        """Return a failed outcome. Closes the connection of a Produce with acks=0, which has no response."""
        ctx = self.ctx
        if not isinstance(self.request, ProduceRequest) or self.request.acks:
            return reply
        ctx.session.connection.close(f"produce with acks=0 failed: {ErrorCode(ctx.error_code).name}, by a fault rule")
        return NO_RESPONSE

    @property
    def fetch_error(self) -> Callable[[str, int], ErrorCode | None] | None:
        return self._fetch_error if self._failed_partitions else None

    def _fetch_error(self, topic: str, partition: int) -> ErrorCode | None:
        where = ResponseItem(topic, partition)
        return next((code for fault, code in self._failed_partitions if fault.match.hits_part(where)), None)

    # -- details -------------------------------------------------------------------------------------------------------

    def _act(self, hit: RuleHit, otherwise: _T, act: Callable[..., _T], *args: object) -> _T:
        """Return what the action returns; if it fails, disable its rule and return `otherwise`."""
        try:
            return act(self, hit, *args)
        except Exception as error:
            hit.fault.disable(error)
            return otherwise

    def _wait(self, rule: Fault, delay_ms: float, then: Callable[[], Reply], *, is_held: bool) -> Wait:
        ctx = self.ctx
        wait = _Wait(ctx, rule, delay_ms, then)
        if is_held:
            rule.hold(wait)
        return ctx.park(wait, self._owner.waiting_on(self.broker), [rule])

    def _merge_back(self, taken: _SplitOffPart, reply: Reply) -> Reply:
        self.ctx.error_code = self.ctx.error_code or taken.code
        if isinstance(reply, Outcome):
            return self.report_failure(reply)
        merge(taken.level, taken.request, reply, taken.failed)
        return reply

    def _copy_request(self) -> None:
        request = self.request
        if self.ctx.route.api_key != ApiKey.PRODUCE:
            return
        assert isinstance(request, ProduceRequest)
        self.request = copied = copy(request)
        copied.topic_data = []
        for topic in request.topic_data:
            own = copy(topic)
            own.partition_data = [copy(item) for item in topic.partition_data]
            for item in own.partition_data:
                if item.records is not None:
                    item.records = memoryview(bytes(item.records))  # type: ignore[arg-type]  # the decoder gives bytes
            copied.topic_data.append(own)


def _is_unfinished(reply: Reply) -> bool:
    return isinstance(reply, Wait | HeldRead)
