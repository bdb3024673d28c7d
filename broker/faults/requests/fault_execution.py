"""The execution of one request that rules hit.

    matching rules in the order of addition: before -> the request is handled -> after, for each hit
    -> quotas -> answering -> the journal -> leaving -> sent

`before` and `after` may park the request until the rule's wait is over. A response, or an end of the request, skips
further rules. A request parked before its handling has copies of its records, because the read buffer is reused.
"""

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial

from sluice.broker.broker import Broker, Handle
from sluice.broker.exchange.routes import Routes
from sluice.broker.faults.actions.action import RuleHit
from sluice.broker.faults.actions.response_frame import CloseMethod, ResponseFrame
from sluice.broker.faults.fault import RuleOwner
from sluice.broker.faults.interfaces import ActiveRule
from sluice.broker.requests.context import ENDED, NO_RESPONSE, Outcome, RequestContext, Wait
from sluice.broker.requests.delayed_request import DelayedRequest
from sluice.broker.throttling.verdict import HeldRead
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.codec.compile import decode_prefix
from sluice.protocol.error_response import ErrorLevel, ResponseItem, merge
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message


class _Wait(DelayedRequest):
    __slots__ = ("_fault", "_then")

    def __init__(
        self, ctx: RequestContext, fault: ActiveRule, delay_ms: float, then: Callable[[], Message | Outcome]
    ) -> None:
        super().__init__(ctx, delay_ms)
        self._fault = fault
        self._then = then

    def try_complete(self) -> bool:
        return self._fault.has_ended and self.force_complete()

    def _respond(self) -> Message | Outcome:
        return self._then()


class SplitOffPart:
    __slots__ = ("code", "failed", "level", "request")

    def __init__(self, level: ErrorLevel, request: Message, failed: Message, code: ErrorCode) -> None:
        self.level = level
        self.request = request
        self.failed = failed
        self.code = code


class FaultExecution:
    def __init__(
        self,
        owner: RuleOwner,
        broker: Broker,
        routes: Routes,
        handle: Handle,
        ctx: RequestContext,
        request: Message,
        hits: Iterator[RuleHit],
    ) -> None:
        # `hits` is lazy: each rule is matched after the previous ones acted on the request.
        self.broker = broker
        self.routes = routes
        self.ctx = ctx
        self.request = request
        self._overwriting: list[ActiveRule] = []
        self._failed_partitions: list[tuple[ActiveRule, ErrorCode]] = []
        self._owner = owner
        self._handle = handle
        self._pending = hits
        self._hits: list[RuleHit] = []
        self._finished = 0  # number of hits whose `after` was called
        self._split_off: list[SplitOffPart] = []
        self._repeats = 0
        self._then_close: CloseMethod | None = None
        self._mute: Wait | None = None

    # -- steps ---------------------------------------------------------------------------------------------------------

    def begin(self) -> Message | Outcome:
        for hit in self._pending:
            self._hits.append(hit)
            try:
                outcome = hit.action.before(self, hit)
            except Exception as error:
                hit.fault.disable(error)
                continue
            if outcome is not None:
                return outcome if isinstance(outcome, Wait) else self.after(outcome)
        outcome = self._handle(self.ctx, self.request, self.broker)
        return outcome if _is_unfinished(outcome) else self.after(outcome)

    def after(self, outcome: Message | Outcome) -> Message | Outcome:
        while self._repeats:
            self._repeats -= 1
            self.ctx.error_code = 0
            outcome = self._handle(self.ctx, self.request, self.broker)
            if _is_unfinished(outcome):
                return outcome
        while self._split_off:
            outcome = self._merge_back(self._split_off.pop(), outcome)
        while self._finished < len(self._hits):
            hit = self._hits[self._finished]
            self._finished += 1
            try:
                outcome = hit.action.after(self, hit, outcome)
            except Exception as error:
                hit.fault.disable(error)
            if isinstance(outcome, Wait):
                break
        return outcome

    def answering(self, body: list[bytes | memoryview]) -> list[bytes | memoryview]:
        for hit in self._hits:
            try:
                body = hit.action.answering(self, hit, body)
            except Exception as error:
                hit.fault.disable(error)
        return body

    def leaving(self, frame: bytes) -> list[bytes]:
        changed = ResponseFrame(frame)
        for hit in self._hits:
            try:
                hit.action.leaving(self, hit, changed)
            except Exception as error:
                hit.fault.disable(error)
        self._then_close = changed.close
        return [changed.data] * changed.copies

    def sent(self) -> Wait | None:
        if self._then_close is not None:
            self.close(self._hits[-1].fault, self._then_close)
            return None
        for hit in self._hits:
            try:
                hit.action.sent(self, hit)
            except Exception as error:
                hit.fault.disable(error)
        return self._mute

    # -- InterceptedRequest --------------------------------------------------------------------------------------------

    def wait_before(self, rule: ActiveRule, delay_ms: float) -> Outcome:
        self._copy_request()
        return self._wait(rule, delay_ms, self.begin)

    def wait_after(self, rule: ActiveRule, delay_ms: float, outcome: Message | Outcome) -> Outcome:
        return self._wait(rule, delay_ms, partial(self.after, outcome))

    def close(self, rule: ActiveRule, how: CloseMethod) -> Outcome:
        reason = f"fault rule {rule.id}"
        if how == "rst":
            self.ctx.session.connection.reset(reason)
        else:
            self.ctx.session.connection.close(reason)
        return ENDED

    def repeat(self) -> None:
        self._copy_request()
        self._repeats += 1

    def mute(self, rule: ActiveRule, delay_ms: float) -> None:
        self._mute = self._wait(rule, delay_ms, lambda: ENDED)  # the response is sent
        self._mute.mutes = True

    def set_throttle_time(self, body: list[bytes | memoryview], throttle_ms: int) -> list[bytes | memoryview]:
        ctx, route = self.ctx, self.ctx.route
        view = memoryview(b"".join(body))
        answer, _ = decode_prefix(API_KEYS[route.api_key].response, route.version)(view, 0, len(view))
        answer.throttle_time_ms = throttle_ms  # type: ignore[attr-defined]  # called only if the response has this field
        changed: list[bytes | memoryview] = []
        route.encode(answer, changed)
        self._owner.record_throttle_time(ctx, throttle_ms)
        return changed

    def split_off(self, level: ErrorLevel, rest: Message, failed: Message, code: ErrorCode) -> None:
        self._split_off.append(SplitOffPart(level, self.request, failed, code))
        self.request = rest

    def overwrite(self, rule: ActiveRule) -> None:
        self._overwriting.append(rule)

    def is_overwritten_by(self, rule: ActiveRule) -> bool:
        return rule in self._overwriting

    def request_without(self, level: ErrorLevel) -> Message:
        rest = copy(self.request)
        setattr(rest, level.steps[0].request_list, [])
        return rest

    def fail_partitions(self, rule: ActiveRule, code: ErrorCode) -> None:
        self._failed_partitions.append((rule, code))

    def report_failure(self, outcome: Message | Outcome) -> Message | Outcome:
        ctx = self.ctx
        if not isinstance(self.request, ProduceRequest) or self.request.acks:
            return outcome
        ctx.session.connection.close(f"produce with acks=0 failed: {ErrorCode(ctx.error_code).name}, by a fault rule")
        return NO_RESPONSE

    @property
    def fetch_error(self) -> Callable[[str, int], ErrorCode | None] | None:
        return self._fetch_error if self._failed_partitions else None

    def _fetch_error(self, topic: str, partition: int) -> ErrorCode | None:
        where = ResponseItem(topic, partition)
        return next((code for fault, code in self._failed_partitions if fault.match.hits_part(where)), None)

    # -- details -------------------------------------------------------------------------------------------------------

    def _wait(self, rule: ActiveRule, delay_ms: float, then: Callable[[], Message | Outcome]) -> Wait:
        ctx = self.ctx
        return ctx.park(_Wait(ctx, rule, delay_ms, then), self._owner.waiting_on(self.broker), [rule])

    def _merge_back(self, taken: SplitOffPart, outcome: Message | Outcome) -> Message | Outcome:
        self.ctx.error_code = self.ctx.error_code or taken.code
        if isinstance(outcome, Outcome):
            return self.report_failure(outcome)
        merge(taken.level, taken.request, outcome, taken.failed)
        return outcome

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


def _is_unfinished(outcome: Message | Outcome) -> bool:
    return isinstance(outcome, Wait | HeldRead)
