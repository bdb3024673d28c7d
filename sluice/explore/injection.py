"""Injections: failures at the nth request of a client to an API.

A failure is placed at a request that an earlier run has sent, so that it hits. Failures of requests are fault rules;
the others (events.py) happen while the request is handled.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from glob import escape
from typing import NamedTuple, TypeVar

import msgspec

from sluice.broker.faults.actions.delay import Delay
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.no_response import Close
from sluice.broker.faults.actions.throttle import Throttle
from sluice.broker.faults.fault import Action
from sluice.broker.faults.requests.fault_execution import FaultExecution, Reply, RequestAction, RuleHit
from sluice.broker.requests.context import Outcome
from sluice.errors import ArgumentError
from sluice.text.error_text import one_of

from . import events, processes

T = TypeVar("T")
_NO_CLIENT_ID = '""'  # in a text
_NUMBER = re.compile(r"-\d+\Z")
_ANY_NUMBER = "-*"


class Kind(NamedTuple):
    """A kind of failure.

    text: what happens to the request
    apis: APIs at whose requests it is injected
    action: the action of a fault rule; in place of the event in a cluster of one broker, if there is an event, too
    event: what happens besides, before or after the request is handled
    is_after: whether it happens after the request was handled
    is_lost: whether there is no response then
    needs: what it needs: an application, a member of a group, or a transaction; "": nothing
    """

    text: str
    apis: frozenset[str]
    action: Action | None = None
    event: Callable[[events.Hit], bool] | None = None
    is_after: bool = False
    is_lost: bool = False
    needs: str = ""


# Of the classic protocol of groups, and of KIP-848.
HEARTBEATS = frozenset({"Heartbeat", "ConsumerGroupHeartbeat"})
_GROUP = HEARTBEATS | {"JoinGroup", "SyncGroup", "OffsetCommit", "OffsetFetch"}
_TRANSACTION = frozenset({"InitProducerId", "AddPartitionsToTxn", "AddOffsetsToTxn", "TxnOffsetCommit", "EndTxn"})
_RECORDS = frozenset({"Produce", "Fetch"})
_ALL = _GROUP | _TRANSACTION | _RECORDS | {"ListOffsets", "FindCoordinator"}
# Requests of a client that works; the others are those of its start.
_WORK = HEARTBEATS | {"Fetch", "Produce", "OffsetCommit"} | _TRANSACTION
# Requests after which a client has done something that it may do again.
CHANGES = HEARTBEATS | {"Produce", "OffsetCommit", "TxnOffsetCommit", "EndTxn", "JoinGroup"}

KINDS: Mapping[str, Kind] = {
    "response-lost": Kind("is handled, but its connection is closed without a response", _ALL, Close("after")),
    "request-lost": Kind("is not handled, and its connection is closed", _ALL, Close("before")),
    "kill-before": Kind(
        "is not handled, as its application is killed, and restarted",
        _ALL,
        event=events.kill,
        needs="application",
        is_lost=True,
    ),
    "kill-after": Kind(
        "is handled, then its application is killed, and restarted",
        _ALL,
        event=events.kill,
        needs="application",
        is_after=True,
        is_lost=True,
    ),
    "cancelled": Kind(
        "is handled, while its application is cancelled, and restarted", _ALL, event=events.cancel, needs="application"
    ),
    "paused": Kind(
        f"is handled, then its application is paused for {processes.PAUSE_S:g} s",
        _WORK,
        event=events.pause,
        needs="application",
        is_after=True,
    ),
    "second-instance": Kind(
        "is handled, and a second instance of the application starts",
        _WORK,
        event=events.start_second,
        needs="application",
        is_after=True,
    ),
    "session-expired": Kind(
        "is handled after the session of its group member has expired",
        (_GROUP | _RECORDS | _TRANSACTION) - {"JoinGroup"},
        event=events.expire_session,
        needs="member",
    ),
    "rebalance": Kind(
        f"is handled, while another member joins its group for {events.SECOND_MEMBER_S:g} s",
        _WORK - {"InitProducerId"},
        event=events.rebalance,
        needs="member",
    ),
    "leader-moved": Kind(
        "is handled after the leader has moved",
        _RECORDS | {"ListOffsets"},
        Error("NOT_LEADER_OR_FOLLOWER"),
        events.move_leader,
    ),
    "coordinator-moved": Kind(
        "is handled after its coordinator has moved",
        _GROUP | _TRANSACTION,
        Error("NOT_COORDINATOR"),
        events.move_coordinator,
    ),
    "broker-killed": Kind(
        f"is handled, but its broker is killed without a response, and restarted after {events.DOWN_S:g} s",
        _ALL,
        event=events.kill_broker,
        is_after=True,
        is_lost=True,
    ),
    "broker-lost": Kind(
        "is handled, but its broker is killed without a response, and not restarted",
        _ALL,
        event=events.lose_broker,
        is_after=True,
        is_lost=True,
    ),
    "broker-power-lost": Kind(
        f"is handled, but its broker loses power and its page cache, and is restarted after {events.DOWN_S:g} s",
        frozenset({"Produce", "OffsetCommit"}) | _TRANSACTION,
        event=events.power_off_broker,
        is_after=True,
        is_lost=True,
    ),
    "producer-fenced": Kind(
        "is handled after another producer with its transactional id was initialized",
        _TRANSACTION | {"Produce"},
        event=events.fence_producer,
        needs="transaction",
    ),
    "clock-jump": Kind(
        f"is handled after the wall clock was set {events.CLOCK_JUMP_S / 3600:g} h forward",
        _WORK,
        event=events.jump_clock,
    ),
    "slow-disk": Kind(f"is handled with a slow disk, for {events.SLOW_DISK_S:g} s", _RECORDS, event=events.slow_disk),
    "throttle": Kind("is handled, and its connection is throttled for 5 s", _ALL, Throttle("5s")),
    "slow": Kind("is handled, and its response takes 2 s", _ALL, Delay("2s", when="after")),
    "stalled": Kind("is handled, and its response takes 20 s", _ALL, Delay("20s", when="after")),
}
# What a correct application survives only in a cluster: records on one broker have one replica.
_OF_CLUSTERS = frozenset({"broker-power-lost", "broker-lost"})


def checked_failures(given: Sequence[str] | None, brokers: int) -> Sequence[str]:
    """Return the kinds of failures of a search. Raises ArgumentError."""
    if given is None:
        return [kind for kind in KINDS if brokers > 1 or kind not in _OF_CLUSTERS]
    for kind in given:
        if kind not in KINDS:
            raise ArgumentError(f"explore: failures: {one_of(KINDS, kind)}")
    return [*dict.fromkeys(given)]


class Injection(msgspec.Struct, frozen=True, order=True):
    """A failure at a request.

    kind: kind of failure, see `KINDS`
    client_id, api: client and API of the request; see `numberless`
    nth: its number among the requests of this client to this API, from 1
    """

    kind: str
    client_id: str
    api: str
    nth: int

    def __str__(self) -> str:
        return f"{self.kind} {self.client_id or _NO_CLIENT_ID} {self.api} {self.nth}"

    @property
    def sentence(self) -> str:
        client = self.client_id or "a client without a client id"
        return f"{self.api} request {self.nth} of {client} {KINDS[self.kind].text}"


def numberless(client_id: str) -> str:
    """Return a client id with `*` in place of a number at its end.

    Clients number their default ids through the whole process, so that each run has other ones.
    """
    return _NUMBER.sub(_ANY_NUMBER, client_id)


def pattern_of(client_id: str) -> str:
    """Return the glob pattern of an injection's client id."""
    if client_id.endswith(_ANY_NUMBER):
        return escape(client_id.removesuffix("*")) + "[0-9]*"
    return escape(client_id)


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


class Calling(RequestAction, frozen=True, tag="calling"):
    """Calls a function before or after the handling of a request.

    It is set as the action of a rule that exists: rules are recorded as JSON, which has no functions.
    """

    happen: Callable[[FaultExecution], object] | None = None
    is_after: bool = False
    is_lost: bool = False

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        return None if self.is_after else self._call(intercepted, hit, None)

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        return self._call(intercepted, hit, reply) if self.is_after else reply

    def _call(self, intercepted: FaultExecution, hit: RuleHit, otherwise: T) -> Outcome | T:
        assert self.happen is not None
        self.happen(intercepted)
        return intercepted.close(hit.fault, "rst") if self.is_lost else otherwise
