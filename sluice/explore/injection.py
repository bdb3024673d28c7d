"""Injections: failures at the nth request of a client to an API.

A failure is placed at a request that an earlier run has sent, so that it hits. Failures of requests are fault rules;
the others (a killed application, a second instance) happen while the request is handled.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import Close
from sluice.broker.faults.fault import Action
from sluice.broker.faults.requests.fault_execution import FaultExecution, Reply, RequestAction, RuleHit
from sluice.broker.requests.context import RequestContext
from sluice.errors import ArgumentError
from sluice.text.error_text import one_of

_NO_CLIENT_ID = '""'  # in a text


class Kind(NamedTuple):
    """A kind of failure.

    text: what happens to the request
    apis: APIs at whose requests it is injected
    action: the action of a fault rule, or None
    event: the method of `Run` that is called before or after the request is handled, or ""
    """

    text: str
    apis: frozenset[str]
    action: Action | None = None
    event: str = ""
    is_after: bool = False


_GROUP = frozenset({"JoinGroup", "SyncGroup", "Heartbeat", "OffsetCommit", "OffsetFetch", "ConsumerGroupHeartbeat"})
_MEMBER = frozenset({"Heartbeat", "OffsetCommit", "SyncGroup"})
_TRANSACTION = frozenset({"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"})
_RECORDS = frozenset({"Produce", "Fetch"})
_ALL = _GROUP | _TRANSACTION | _RECORDS | {"ListOffsets", "FindCoordinator"}
# Requests after which a client has done something that it may do again.
CHANGES = frozenset({"Produce", "OffsetCommit", "TxnOffsetCommit", "EndTxn", "JoinGroup", "Heartbeat"})

KINDS: Mapping[str, Kind] = {
    "response-lost": Kind("is handled, but its connection is closed without a response", _ALL, Close("after")),
    "request-lost": Kind("is not handled, and its connection is closed", _ALL, Close("before")),
    "kill-before": Kind("is not handled, as its application is killed, and restarted", _ALL, None, "kill"),
    "kill-after": Kind("is handled, then its application is killed, and restarted", _ALL, None, "kill", True),
    "second-instance": Kind(
        "is handled, and a second instance of the application starts",
        frozenset({"Fetch", "OffsetCommit", "Heartbeat", "Produce", "AddPartitionsToTxn"}),
        None,
        "start_second",
        True,
    ),
    "session-expired": Kind("fails with UNKNOWN_MEMBER_ID", _MEMBER, Error("UNKNOWN_MEMBER_ID")),
    "rebalance": Kind("fails with REBALANCE_IN_PROGRESS", _MEMBER, Error("REBALANCE_IN_PROGRESS")),
    "leader-moved": Kind("fails with NOT_LEADER_OR_FOLLOWER", _RECORDS, Error("NOT_LEADER_OR_FOLLOWER")),
    "coordinator-moved": Kind("fails with NOT_COORDINATOR", _GROUP | _TRANSACTION, Error("NOT_COORDINATOR")),
    "slow": Kind("is handled, and its response takes 2 s", _ALL, Delay("2s", when="after")),
    "stalled": Kind("is handled, and its response takes 20 s", _ALL, Delay("20s", when="after")),
}


class Injection(msgspec.Struct, frozen=True, order=True):
    """A failure at a request.

    kind: kind of failure, see `KINDS`
    client_id, api: client and API of the request
    nth: its number among the requests of this client to this API, from 1
    """

    kind: str
    client_id: str
    api: str
    nth: int

    def __str__(self) -> str:
        return f"{self.kind} {self.client_id or _NO_CLIENT_ID} {self.api} {self.nth}"

    @property
    def is_event(self) -> bool:
        """Whether something happens besides the request."""
        return bool(KINDS[self.kind].event)

    @property
    def sentence(self) -> str:
        client = self.client_id or "a client without a client id"
        return f"{self.api} request {self.nth} of {client} {KINDS[self.kind].text}"


def parse(text: str) -> Injection:
    """Return an injection written as `KIND CLIENT_ID API NTH`. Raises ArgumentError."""
    kind, _, rest = text.partition(" ")
    client_id, _, last = rest.rpartition(" ")
    client_id, _, api = client_id.rpartition(" ")
    if not (last.isascii() and last.isdecimal() and int(last) and client_id and api):
        raise ArgumentError(
            f"replay: expected KIND CLIENT_ID API NTH, such as kill-after shop OffsetCommit 1; got {text}"
        )
    if kind not in KINDS:
        raise ArgumentError(f"replay: {one_of(KINDS, kind)}")
    if api not in KINDS[kind].apis:
        raise ArgumentError(f"replay: {kind}: {one_of(sorted(KINDS[kind].apis), api)}")
    return Injection(kind, "" if client_id == _NO_CLIENT_ID else client_id, api, int(last))


def calling(call: Callable[[RequestContext], object], *, is_after: bool) -> RequestAction:
    """Return an action that calls a function before or after the handling of a request, and does not change it."""

    class Calling(RequestAction, frozen=True, tag="calling"):
        def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
            if not is_after:
                call(intercepted.ctx)
            return None

        def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
            if is_after:
                call(intercepted.ctx)
            return reply

    return Calling()
