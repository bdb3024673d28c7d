"""`error`: a response with an error code, at the level of the response that carries the code."""

import re
from typing import Annotated, Literal

import msgspec

from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.values import RuleProblem
from sluice.broker.faults.requests.fault_execution import FaultExecution, Reply, RequestAction, RuleHit
from sluice.broker.handlers.cluster.api_versions import unsupported_version
from sluice.broker.requests.context import NO_RESPONSE, Outcome
from sluice.broker.security.sasl.refusal import refuse
from sluice.protocol.apis import API_KEYS, ApiKey
from sluice.protocol.error_codes import PARTITION, TOP, TOPIC, apis_of, codes_of
from sluice.protocol.error_response import ErrorLevel, level_of, overwrite, split, whole
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.text.error_text import did_you_mean

_METADATA, _ELECT_LEADERS = 3, 43
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_OF_SASL = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
# Always handled: clients also need the parts of the response without an error.
_IS_HANDLED = frozenset({_METADATA})
# Metadata v0 cannot request an empty list of topics.
_NO_TOPICS_SINCE = 1


class Error(RequestAction, frozen=True, tag="error"):
    """Returns an error for the matching partitions, topics or groups of a request, or for all of it."""

    code: Annotated[str | int, msgspec.Meta(description="name or number of a Kafka error code")]
    when: Annotated[
        Literal["before", "after"],
        msgspec.Meta(description="before: what fails is not handled; after: it is handled, and reported as failed"),
    ] = "before"

    @property
    def error_code(self) -> ErrorCode:
        """The error code. Raises RuleProblem for an unknown one."""
        try:
            name = self.code if isinstance(self.code, int) or not _NUMBER.fullmatch(self.code) else int(self.code)
            return ErrorCode[name] if isinstance(name, str) else ErrorCode(name)
        except (KeyError, ValueError):
            accepted = "; expected a name such as NOT_LEADER_OR_FOLLOWER, or its number"
            hint = did_you_mean(str(self.code), ErrorCode.__members__, accepted)
            raise RuleProblem("action.code", f"unknown error code {self.code!r}{hint}") from None

    def check(self, match: Match) -> None:
        code = self.error_code
        unable = [key for key in match.named_apis if code not in codes_of(key)]
        able = {*apis_of(code)} if unable or not match.named_apis else {*match.named_apis}
        if not able:
            raise RuleProblem("action.code", f"{_format(code)} never occurs in responses to clients")
        for key in unable:
            codes = ", ".join(each.name for each in sorted(codes_of(key)))
            raise RuleProblem(
                "action.code", f"{API_KEYS[key].name} cannot return {_format(code)}; expected one of {codes}"
            )
        first, last = match.versions
        hits = [
            (key, version)
            for key in sorted(match.apis & able)
            for version in range(max(first, HANDLERS[key].min_version), min(last, HANDLERS[key].max_version) + 1)
        ]
        if not any(self.can_hit(*each) for each in hits):
            apis = ", ".join(API_KEYS[key].name for key in sorted(apis_of(code)))
            raise RuleProblem(
                "action.code", f"no API that the rule matches can return {_format(code)}; expected one of {apis}"
            )

    def can_hit(self, api_key: int, version: int) -> bool:
        code = self.error_code
        level = codes_of(api_key).get(code)
        if level is None or (self.when == "after" and api_key in _OF_SASL):
            return False
        return level_of(api_key, version, level) is not None

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        if self.is_after(intercepted):
            return None
        ctx, api_key, code = intercepted.ctx, intercepted.ctx.route.api_key, self.error_code
        if api_key == ApiKey.API_VERSIONS and code == ErrorCode.UNSUPPORTED_VERSION:
            return _fall_back(intercepted)
        level = self._level(intercepted, hit)
        if api_key == ApiKey.FETCH and level.name == PARTITION:
            intercepted.fail_partitions(hit.fault, code)
            return None
        if level.name == TOP:
            return _failed_as_a_whole(intercepted, hit, code)
        fails, topics_by_id = hit.fault.match.hits_part, intercepted.broker.metadata.topics_by_id
        divided = None
        if api_key not in _IS_HANDLED or (level.is_in_request and ctx.version >= _NO_TOPICS_SINCE):
            divided = split(api_key, ctx.version, level, intercepted.request, code, fails, topics_by_id)
        if divided is None:
            if api_key == _ELECT_LEADERS:  # null: the request does not list its partitions
                return _failed_as_a_whole(intercepted, hit, code)
            intercepted.overwriting.add(hit.fault)
            return None
        rest = divided.rest
        if rest is None and api_key in _IS_HANDLED:
            rest = intercepted.request_without(level)
        if rest is None:
            ctx.error_code = ctx.error_code or code
            return intercepted.report_failure(divided.failed)
        intercepted.split_off(level, rest, divided.failed, code)
        return None

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        if not self.is_after(intercepted) and hit.fault not in intercepted.overwriting:
            return reply
        ctx, code = intercepted.ctx, self.error_code
        if isinstance(reply, Outcome):
            if reply is NO_RESPONSE:
                ctx.error_code = ctx.error_code or code
                return intercepted.report_failure(reply)
            return reply
        level = self._level(intercepted, hit)
        if level.name == TOP:
            reply = whole(ctx.route.api_key, intercepted.request, code)
        elif not overwrite(level, reply, code, hit.fault.match.hits_part, intercepted.broker.metadata.topics_by_id):
            return reply
        ctx.error_code = ctx.error_code or code
        return reply

    def is_after(self, intercepted: FaultExecution) -> bool:
        """Return whether to fail after handling; not for Fetch, whose session must know of the error."""
        return self.when == "after" and intercepted.ctx.route.api_key != ApiKey.FETCH

    def _level(self, intercepted: FaultExecution, hit: RuleHit) -> ErrorLevel:
        route = intercepted.ctx.route
        name = codes_of(route.api_key)[self.error_code]
        if name == TOPIC and "partition" in hit.fault.match.names:
            name = PARTITION  # the topic's error then applies to single partitions
        level = level_of(route.api_key, route.version, name)
        assert level is not None, "can_hit excludes other routes"
        return level


def _failed_as_a_whole(intercepted: FaultExecution, hit: RuleHit, code: ErrorCode) -> Reply:
    ctx = intercepted.ctx
    ctx.error_code = ctx.error_code or code
    response = whole(ctx.route.api_key, intercepted.request, code)
    sasl = ctx.session.authentication
    if ctx.route.api_key in _OF_SASL and sasl is not None:
        # Ends the connection after a delay, like any failed authentication.
        return refuse(ctx, sasl, intercepted.broker.scheduler, response, f"fault rule {hit.fault.id}")
    return response


def _fall_back(intercepted: FaultExecution) -> Message:
    """Use version 0, which every client can read (KIP-511)."""
    ctx = intercepted.ctx
    route = intercepted.routes.find(ApiKey.API_VERSIONS << 16)
    assert route is not None  # version 0 is always served
    ctx.route = route
    return unsupported_version(ctx, intercepted.broker)


def _format(code: ErrorCode) -> str:
    return f"{code.value} {code.name}"
