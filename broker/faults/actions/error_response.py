"""`error`: an answer with an error code, on the level of the answer where the code stands."""

import re
from typing import Annotated, ClassVar, Literal

import msgspec

from sluice.broker.dispatch.registry import HANDLERS
from sluice.broker.faults.matching.error_answers import PARTITION, TOP, TOPIC, Level, level_of, overwrite, split, whole
from sluice.broker.faults.matching.error_codes import apis_of, codes_of
from sluice.broker.faults.matching.errors import Problem
from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.requests.fault_execution import Course
from sluice.broker.handlers.cluster.api_versions import unsupported_version
from sluice.broker.requests.context import NO_RESPONSE, Outcome, RequestContext
from sluice.protocol.apis import API_KEYS, API_VERSIONS, FETCH, SASL_AUTHENTICATE, SASL_HANDSHAKE
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.text.did_you_mean import did_you_mean

from .action import Hit, RequestAction

_METADATA, _ELECT_LEADERS = 3, 43
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_OF_SASL = (SASL_HANDSHAKE, SASL_AUTHENTICATE)
# They change nothing that lasts. Failed before or after they were handled is the same, but for what the answer has
# besides: so that it has the rest of what the client needs, it is handled.
_TELLS_MORE = frozenset({_METADATA})
# Metadata v0 has no way to ask for no topic.
_NO_TOPICS_SINCE = 1


class Error(RequestAction, frozen=True, tag="error"):
    """Answers with an error: for the partitions, topics or groups that the rule names, or for all of the request."""

    SUMMARY: ClassVar[str] = "Answers with an error code."

    code: Annotated[str | int, msgspec.Meta(description="name or number of a Kafka error code")]
    when: Annotated[
        Literal["before", "after"],
        msgspec.Meta(description="before: what fails is not handled; after: it is handled, and said to have failed"),
    ] = "before"

    @property
    def error_code(self) -> ErrorCode:
        """Raises Problem for one that Kafka does not have."""
        try:
            name = self.code if isinstance(self.code, int) or not _NUMBER.fullmatch(self.code) else int(self.code)
            return ErrorCode[name] if isinstance(name, str) else ErrorCode(name)
        except (KeyError, ValueError):
            near = did_you_mean(str(self.code), ErrorCode.__members__)
            raise Problem("action.code", f"Kafka has no error code {self.code!r}{near and '; ' + near}") from None

    def check(self, match: Match) -> None:
        code = self.error_code
        able = set(apis_of(code))
        if not able:
            raise Problem("action.code", f"{_told(code)} is none that an answer to a client carries")
        for key in match.named_apis:
            if key not in able:
                codes = ", ".join(each.name for each in sorted(codes_of(key)))
                raise Problem(
                    "action.code", f"{_told(code)}: {API_KEYS[key].name} cannot answer it; it can answer {codes}"
                )
        first, last = match.versions
        hits = [
            (key, version)
            for key in sorted(match.apis & able)
            for version in range(max(first, HANDLERS[key].min_version), min(last, HANDLERS[key].max_version) + 1)
        ]
        if not any(self.can_hit(*each) for each in hits):
            apis = ", ".join(API_KEYS[key].name for key in sorted(able))
            raise Problem(
                "action.code", f"{_told(code)}: none that the rule matches can answer it; those that can are {apis}"
            )

    def can_hit(self, api_key: int, version: int) -> bool:
        code = self.error_code
        level = codes_of(api_key).get(code)
        if level is None or (self.when == "after" and api_key in _OF_SASL):
            return False
        return level_of(api_key, version, level) is not None

    def before(self, course: Course, hit: Hit) -> Message | Outcome | None:
        if self.is_after(course):
            return None
        ctx, api_key, code = course.ctx, course.ctx.route.api_key, self.error_code
        if api_key == API_VERSIONS and code == ErrorCode.UNSUPPORTED_VERSION:
            return _fall_back(ctx)
        level = self._level(course, hit)
        if api_key == FETCH and level.name == PARTITION:
            course.fail_partitions(hit.fault, code)
            return None
        if level.name == TOP:
            return _failed_as_a_whole(course, hit, code)
        fails, topics_by_id = hit.fault.match.hits_part, ctx.broker.cluster.topics_by_id
        divided = None
        if api_key not in _TELLS_MORE or (level.is_asked and ctx.version >= _NO_TOPICS_SINCE):
            divided = split(api_key, ctx.version, level, course.request, code, fails, topics_by_id)
        if divided is None:
            if api_key == _ELECT_LEADERS:  # of all partitions: nothing lists them but the election
                return _failed_as_a_whole(course, hit, code)
            course.overwrite(hit)
            return None
        rest = divided.rest
        if rest is None and api_key in _TELLS_MORE:
            rest = course.request_without(level)
        if rest is None:
            ctx.error_code = ctx.error_code or code
            return course.told(divided.failed)
        course.take_out(level, rest, divided.failed, code)
        return None

    def after(self, course: Course, hit: Hit, outcome: Message | Outcome) -> Message | Outcome:
        if not self.is_after(course) and hit not in course.overwritten:
            return outcome
        ctx, code = course.ctx, self.error_code
        if isinstance(outcome, Outcome):
            if outcome is NO_RESPONSE:
                ctx.error_code = ctx.error_code or code
                return course.told(outcome)
            return outcome
        level = self._level(course, hit)
        if level.name == TOP:
            outcome = whole(ctx.route.api_key, course.request, code)
        elif not overwrite(level, outcome, code, hit.fault.match.hits_part, ctx.broker.cluster.topics_by_id):
            return outcome
        ctx.error_code = ctx.error_code or code
        return outcome

    def is_after(self, course: Course) -> bool:
        """Of a fetch it is the same, but for what its session remembers: that has to know."""
        return self.when == "after" and course.ctx.route.api_key != FETCH

    def _level(self, course: Course, hit: Hit) -> Level:
        route = course.ctx.route
        name = codes_of(route.api_key)[self.error_code]
        if name == TOPIC and "partition" in hit.fault.match.names:
            name = PARTITION  # a topic's error stands there too, where only a partition of it fails
        level = level_of(route.api_key, route.version, name)
        assert level is not None, "a route that the action cannot hit"
        return level


def _failed_as_a_whole(course: Course, hit: Hit, code: ErrorCode) -> Message | Outcome:
    ctx = course.ctx
    ctx.error_code = ctx.error_code or code
    answer = whole(ctx.route.api_key, course.request, code)
    if ctx.route.api_key in _OF_SASL and ctx.sasl is not None:  # as any other that fails: it ends, and in a moment
        return ctx.sasl.refuse(ctx, answer, f"fault rule {hit.fault.id}")
    return answer


def _fall_back(ctx: RequestContext) -> Message:
    """Told in version 0, which a client of any version can read (KIP-511)."""
    route = ctx.broker.dispatcher.route(API_VERSIONS << 16)
    assert route is not None  # it is always served
    ctx.route = route
    return unsupported_version(ctx, ctx.broker)


def _told(code: ErrorCode) -> str:
    return f"{code.value} {code.name}"
