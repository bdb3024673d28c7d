"""Each request of the group APIs, from members and others, to groups of each type and state, and what it leaves.

A row is one API. Each of its requests has a group of its own.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count, product
from typing import Any, NamedTuple

from sluice.protocol.message import Message
from tests.support.groups import subscription
from tests.support.messages import request
from tools.differential.case import MEMORY, Layout, case
from tools.differential.requests import GROUP, OFFSETS_VERSION, commit, committed, coordinator, create_topics
from tools.differential.session import Session, until

_AT_ONCE = (
    "group.initial.rebalance.delay.ms=0",
    "group.streams.initial.rebalance.delay.ms=0",
    "group.consumer.assignment.interval.ms=0",
    "group.share.assignment.interval.ms=0",
    "group.streams.assignment.interval.ms=0",
)
_LAYOUT = Layout(_AT_ONCE, name="group states", storages=(MEMORY,))
_TOPIC, _OTHER_TOPIC = "group-states", "group-states-other"
_MEMBER, _STRANGER = "A" * 22, "B" * 22
_LEAVE, _LEAVE_STATIC = -1, -2
_TIMEOUTS = {"session_timeout_ms": 45_000, "rebalance_timeout_ms": 60_000}
_JOIN_VERSION = 9
_SYNC_VERSION = _LEAVE_VERSION = 5
# What is compared of responses. Neither assignments nor the order of members: those are of a hash map.
_FACTS = ("error_code", "error_message", "group_state", "member_epoch", "generation_id", "protocol_name", "status_code")


class Who(NamedTuple):
    """A group, and one of its members."""

    group: str
    member: str = _MEMBER
    epoch: int = 0  # or the generation
    instance: str | None = None


State = Callable[[Session, str], Who]
Sent = Iterator[tuple[str, Message, int]]  # what it is, the request, and its version


def _protocol(name: str = "range", *topics: str) -> dict[str, Any]:
    return {"name": name, "metadata": subscription(*(topics or (_TOPIC,)))}


def _joining(group: str, member: str = "", **fields: Any) -> Message:
    usual = {"protocol_type": "consumer", "protocols": [_protocol()], **_TIMEOUTS}
    return request("JoinGroup", **{"group_id": group, "member_id": member} | usual | fields)


def _heartbeat(group: str, epoch: int = 0, member: str = _MEMBER, **fields: Any) -> Message:
    return request("ConsumerGroupHeartbeat", **{"group_id": group, "member_id": member, "member_epoch": epoch} | fields)


_JOINS: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [_TOPIC], "topic_partitions": []}


def _share_heartbeat(group: str, epoch: int = 0, member: str = _MEMBER, **fields: Any) -> Message:
    return request("ShareGroupHeartbeat", **{"group_id": group, "member_id": member, "member_epoch": epoch} | fields)


_NO_TASKS: dict[str, Any] = {"active_tasks": [], "standby_tasks": [], "warmup_tasks": []}
_STREAMS_JOINS: dict[str, Any] = {
    "rebalance_timeout_ms": 60_000,
    "process_id": "process",
    "client_tags": [],
    "topology": {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": [_TOPIC]}]},
    **_NO_TASKS,
}


def _streams_heartbeat(group: str, epoch: int = 0, member: str = _MEMBER, **fields: Any) -> Message:
    return request("StreamsGroupHeartbeat", **{"group_id": group, "member_id": member, "member_epoch": epoch} | fields)


def _assigned_topics(response: Any) -> int:
    return 0 if response.assignment is None else len(response.assignment.topic_partitions)


# -- groups ------------------------------------------------------------------------------------------------------------


def _missing(_session: Session, group: str) -> Who:
    return Who(group)


def _simple(session: Session, group: str) -> Who:
    session.request(commit(group, [committed(_TOPIC, (0, ""))]), OFFSETS_VERSION)
    return Who(group)


def _joined(session: Session, group: str, *, instance: str | None = None) -> Who:
    """Return a classic group that waits for the assignment of its only member."""
    joining = _joining(group, group_instance_id=instance)
    member = session.request(joining, _JOIN_VERSION).member_id
    if instance is None:
        session.request(_joining(group, member), _JOIN_VERSION)
    return Who(group, member, 1, instance)


def _classic(session: Session, group: str, *, instance: str | None = None) -> Who:
    who = _joined(session, group, instance=instance)
    sync = request(
        "SyncGroup",
        group_id=group,
        generation_id=1,
        member_id=who.member,
        group_instance_id=instance,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[],
    )
    response = session.request(sync, _SYNC_VERSION)
    assert response.error_code == 0, response
    return who


def _leave(session: Session, group: str, *members: str) -> None:
    leaving = request("LeaveGroup", group_id=group, members=[{"member_id": one} for one in members])
    session.request(leaving, _LEAVE_VERSION)


def _rebalancing(session: Session, group: str) -> tuple[Who, str]:
    """Return the member of a classic group that has to rejoin, and the one that waits for it."""
    who = _classic(session, group)
    second = _pending(session, group)
    session.send(_joining(group, second), _JOIN_VERSION, client_id=f"{group}-waits")
    described = request("DescribeGroups", groups=[group])
    until(lambda: session.request(described, 5), lambda one: one.groups[0].group_state == "PreparingRebalance")
    return who, second


def _pending(session: Session, group: str) -> str:
    """Return the id of a new member that has not joined yet."""
    member: str = session.request(_joining(group), _JOIN_VERSION).member_id
    return member


def _preparing(session: Session, group: str) -> Who:
    return _rebalancing(session, group)[0]


def _left_during_rebalance(session: Session, group: str) -> Who:
    """Return the pending member of a classic group whose members have left while they rejoined."""
    who, second = _rebalancing(session, group)
    third = _pending(session, group)
    _leave(session, group, who.member, second)
    return Who(group, third, 1)


def _empty(session: Session, group: str) -> Who:
    who = _classic(session, group)
    _leave(session, group, who.member)
    return who


def _consumer(session: Session, group: str, *, instance: str | None = None) -> Who:
    epoch = session.request(_heartbeat(group, instance_id=instance, **_JOINS), 1).member_epoch
    return Who(group, epoch=epoch, instance=instance)


def _away(session: Session, group: str) -> Who:
    who = _consumer(session, group, instance="instance")
    session.request(_heartbeat(group, _LEAVE_STATIC, instance_id="instance"), 1)
    return who


def _empty_consumer(session: Session, group: str) -> Who:
    who = _consumer(session, group)
    session.request(_heartbeat(group, _LEAVE), 1)
    return who


def _mixed(session: Session, group: str) -> Who:
    """Return a consumer group with a member of each protocol; the classic one has to rejoin."""
    who = _classic(session, group)
    session.request(_heartbeat(group, **_JOINS), 1)
    return who


def _share(session: Session, group: str) -> Who:
    joined = session.wait_for(
        _share_heartbeat(group, subscribed_topic_names=[_TOPIC]),
        lambda one: _assigned_topics(one) > 0,  # once its partitions are initialized
    )
    return Who(group, epoch=joined.member_epoch)


def _empty_share(session: Session, group: str) -> Who:
    who = _share(session, group)
    session.request(_share_heartbeat(group, _LEAVE))
    return who


def _streams(session: Session, group: str, *, instance: str | None = None) -> Who:
    epoch = session.request(_streams_heartbeat(group, instance_id=instance, **_STREAMS_JOINS)).member_epoch
    return Who(group, epoch=epoch, instance=instance)


def _not_ready(session: Session, group: str) -> Who:
    one = {"subtopology_id": "0", "source_topics": ["group-states-none"]}
    joins = _STREAMS_JOINS | {"topology": {"epoch": 0, "subtopologies": [one]}}
    return Who(group, epoch=session.request(_streams_heartbeat(group, **joins)).member_epoch)


def _empty_streams(session: Session, group: str) -> Who:
    who = _streams(session, group)
    session.request(_streams_heartbeat(group, _LEAVE))
    return who


STATES: dict[str, State] = {
    "missing": _missing,
    "simple": _simple,
    "empty": _empty,
    "waiting": _joined,
    "classic": _classic,
    "static": partial(_classic, instance="instance"),
    "rebalancing": _preparing,
    "only pending": _left_during_rebalance,
    "consumer": _consumer,
    "static consumer": partial(_consumer, instance="instance"),
    "away": _away,
    "empty consumer": _empty_consumer,
    "mixed": _mixed,
    "share": _share,
    "empty share": _empty_share,
    "streams": _streams,
    "static streams": partial(_streams, instance="instance"),
    "not ready": _not_ready,
    "empty streams": _empty_streams,
}


# -- requests ----------------------------------------------------------------------------------------------------------


def _identities(who: Who) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the member's own identity first, then others."""
    yield "member", {"member_id": who.member, "group_instance_id": who.instance}
    yield "stranger", {"member_id": _STRANGER, "group_instance_id": None}
    yield "nobody", {"member_id": "", "group_instance_id": None}
    yield "other instance", {"member_id": who.member, "group_instance_id": "other"}
    if who.instance is not None:
        yield "fenced", {"member_id": _STRANGER, "group_instance_id": who.instance}
        yield "instance alone", {"member_id": "", "group_instance_id": who.instance}
        yield "no instance", {"member_id": who.member, "group_instance_id": None}


def _senders(who: Who, *others: int) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Yield each identity with the current epoch, and the member with other ones."""
    for label, identity in _identities(who):
        epochs = (who.epoch + 1, who.epoch - 1, *others) if label == "member" else ()
        yield label, identity, who.epoch
        yield from ((f"{label} in {epoch - who.epoch:+}", identity, epoch) for epoch in epochs)


def _heartbeats(who: Who) -> Sent:
    for label, identity, epoch in _senders(who):
        yield label, request("Heartbeat", group_id=who.group, generation_id=epoch, **identity), 4


def _syncs(who: Who) -> Sent:
    names = {"protocol_type": "consumer", "protocol_name": "range"}
    for label, identity, epoch in _senders(who):
        sync = request("SyncGroup", group_id=who.group, generation_id=epoch, **identity, **names)
        yield label, sync, _SYNC_VERSION
    (_, identity), *_ = _identities(who)
    member = identity | {"group_id": who.group, "generation_id": who.epoch}
    for fields in ({"protocol_type": "other"}, {"protocol_name": "other"}, {"protocol_type": None}):
        yield f"with {fields}", request("SyncGroup", **member | names | fields), _SYNC_VERSION
    yield "version 4", request("SyncGroup", **member), 4


def _leaves(who: Who) -> Sent:
    identities = dict(_identities(who))
    for label, identity in identities.items():
        yield label, request("LeaveGroup", group_id=who.group, members=[identity]), _LEAVE_VERSION
    several = [identities["stranger"], identities["member"], identities["member"]]
    yield "several", request("LeaveGroup", group_id=who.group, members=several), _LEAVE_VERSION
    yield "no members", request("LeaveGroup", group_id=who.group, members=[]), _LEAVE_VERSION
    yield "version 2", request("LeaveGroup", group_id=who.group, member_id=_STRANGER), 2


def _commits(who: Who) -> Sent:
    topics = [committed(_TOPIC, (0, "")), committed(_OTHER_TOPIC, (0, ""))]
    nobody = {"member_id": "", "group_instance_id": None}
    for label, identity, epoch in (*_senders(who, -1), ("nobody in none", nobody, -1), ("nobody below", nobody, -5)):
        fields = {"group_id": who.group, "generation_id_or_member_epoch": epoch, **identity, "topics": topics}
        yield label, request("OffsetCommit", **fields), OFFSETS_VERSION
    for version in (2, 8):
        yield f"version {version}", commit(who.group, topics, who.member, who.epoch), version
        yield f"version {version} of nobody", commit(who.group, topics), version


def _offset_fetches(who: Who) -> Sent:
    topics = [{"name": _TOPIC, "partition_indexes": [0]}]
    members = ((who.member, epoch) for epoch in (who.epoch, who.epoch + 1, who.epoch - 1, -1))
    for member, epoch in (*members, (_STRANGER, who.epoch), ("", -1), (None, -1)):
        group = {"group_id": who.group, "member_id": member, "member_epoch": epoch, "topics": topics}
        label = f"{'member' if member == who.member else member} in {epoch}"
        for stable in (False, True):
            yield f"{label} {stable}", request("OffsetFetch", groups=[group], require_stable=stable), OFFSETS_VERSION


def _administration(who: Who) -> Sent:
    for topic in (_TOPIC, _OTHER_TOPIC):
        topics = [{"name": topic, "partitions": [{"partition_index": 0}]}]
        yield f"delete offsets of {topic}", request("OffsetDelete", group_id=who.group, topics=topics), 0
    yield "delete", request("DeleteGroups", groups_names=[who.group]), 2
    for version in (5, 6):
        yield f"describe in {version}", request("DescribeGroups", groups=[who.group]), version
    for kind in _MODERN:
        yield f"describe {kind}", request(f"{kind}GroupDescribe", group_ids=[who.group]), 1


_JOIN_VARIANTS: dict[str, dict[str, Any]] = {
    "": {},
    " of other topics": {"protocols": [_protocol("range", _OTHER_TOPIC)]},
    " of another protocol": {"protocols": [_protocol("other")]},
    " of another type": {"protocol_type": "other"},
    " without protocols": {"protocols": []},
    " without metadata": {"protocols": [{"name": "range", "metadata": b""}]},
    " with a short session": {"session_timeout_ms": 5_999},
}


def _joins(who: Who) -> Sent:
    for variant, fields in _JOIN_VARIANTS.items():
        for label, member, instance in (("member", who.member, who.instance), ("new", "", None)):
            sent = _joining(who.group, member, group_instance_id=instance, **fields)
            yield f"{label}{variant}", sent, _JOIN_VERSION
    for label, identity in list(_identities(who))[1:]:
        if identity["member_id"]:
            yield label, _joining(who.group, **identity), _JOIN_VERSION
    if who.instance is not None:
        yield "returning", _joining(who.group, group_instance_id=who.instance), _JOIN_VERSION


def _modern(build: Callable[..., Message], joins: dict[str, Any], *, is_static: bool = True) -> Callable[[Who], Sent]:
    def heartbeats(who: Who) -> Sent:
        common = {who.epoch, 0, _LEAVE}
        others = {who.epoch + 1, max(who.epoch - 1, 0), _LEAVE_STATIC, _LEAVE_STATIC - 1}
        for label, member, epochs in (("member", _MEMBER, common | others), ("stranger", _STRANGER, common)):
            for epoch, instance in product(sorted(epochs), (None, "instance") if is_static else (None,)):
                fields = (joins if epoch == 0 else {}) | ({"instance_id": instance} if instance else {})
                yield f"{label} in {epoch} {instance}", build(who.group, epoch, member, **fields), 1

    return heartbeats


_MODERN = ("Consumer", "Share", "Streams")
REQUESTS: dict[str, Callable[[Who], Sent]] = {
    "Heartbeat": _heartbeats,
    "SyncGroup": _syncs,
    "LeaveGroup": _leaves,
    "OffsetCommit": _commits,
    "OffsetFetch": _offset_fetches,
    "administration": _administration,
    "JoinGroup": _joins,
    "ConsumerGroupHeartbeat": _modern(_heartbeat, _JOINS),
    "ShareGroupHeartbeat": _modern(_share_heartbeat, {"subscribed_topic_names": [_TOPIC]}, is_static=False),
    "StreamsGroupHeartbeat": _modern(_streams_heartbeat, _STREAMS_JOINS),
}


def _facts(found: Any) -> Iterator[Any]:
    """Yield what is compared of a masked response."""
    if isinstance(found, list):
        for one in found:
            yield from _facts(one)
    elif isinstance(found, dict):
        yield from (value for name, value in found.items() if name in _FACTS)
        yield from (fact for value in found.values() for fact in _facts(value))


def _left(session: Session, group: str) -> list[Any]:
    """Return the state, the epochs and the members of a group."""
    (described,) = session.request(request("DescribeGroups", groups=[group]), 5).groups
    found = [described.group_state, len(described.members)]
    for kind in _MODERN:
        (one,) = session.request(request(f"{kind}GroupDescribe", group_ids=[group]), 1).groups
        if not one.error_code:
            found = [one.group_state, one.group_epoch, one.assignment_epoch]
            found.append(sorted(member.member_epoch for member in one.members))
    return found


def send_to_groups(session: Session, api: str) -> None:
    session.wait_for(coordinator(api, GROUP), lambda response: not response.coordinators[0].error_code)
    _create_topics(session)
    for state, make in STATES.items():
        found: dict[str, Any] = {}
        for label, group, message, version in _requests(session, api, state, make):
            response = session.request(message, version)
            facts = sorted(str(fact).replace(group, "GROUP") for fact in _facts(session.masked(response)))
            # Kafka responds to a JoinGroup that fails before it has written a new group.
            found[label] = facts if api == "JoinGroup" and response.error_code else [*facts, *_left(session, group)]
        session.note(state, found)


def _requests(session: Session, api: str, state: str, make: State) -> Iterator[tuple[str, str, Message, int]]:
    """Yield each request to a new group, with its label, group and version."""
    number = 0
    while True:
        group = f"{api}-{state}-{number}"
        sent = list(REQUESTS[api](make(session, group)))
        if number == len(sent):
            return
        label, message, version = sent[number]
        yield label, group, message, version
        number += 1


def _create_topics(session: Session) -> None:
    """Create the topics, and wait until the group coordinator, which learns of them later, assigns them."""
    topics = [{"name": name, "num_partitions": 2, "replication_factor": 1} for name in (_TOPIC, _OTHER_TOPIC)]
    session.request(create_topics(*topics))
    for name in (_TOPIC, _OTHER_TOPIC):
        session.wait_for_leaders(name)
    probes = (
        _heartbeat(f"probe-{number}", **_JOINS | {"subscribed_topic_names": [_TOPIC, _OTHER_TOPIC]})
        for number in count()
    )
    until(lambda: session.request(next(probes)), lambda one: _assigned_topics(one) == 2)


for _api in REQUESTS:
    case(_LAYOUT, row=_api)(partial(send_to_groups, api=_api))
