"""The validation of ConsumerGroupHeartbeat requests (KIP-848).

Follows Kafka's GroupCoordinatorService and GroupMetadataManager.
"""

from collections.abc import Iterable, Sequence

from sluice.broker.coordinator.group.group import HeartbeatError
from sluice.broker.coordinator.group.modern_group import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    STATIC_LEAVE_EPOCH,
    MemberSlot,
    blank_field,
    fenced_epoch,
    first_problem,
    unreleased_instance,
)
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.errors import ErrorCode
from sluice.text.regex import InvalidRegexError, compile_regex

from .current_assignment import Owned
from .group import ConsumerGroup
from .member import ConsumerMember

_CLIENT_MEMBER_IDS_SINCE = 1


def request_error(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]
) -> HeartbeatError | None:
    epoch = request.member_epoch
    needs_member_id = version >= _CLIENT_MEMBER_IDS_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    joins, leaves_temporarily = epoch == JOIN_EPOCH, epoch == STATIC_LEAVE_EPOCH
    no_topics = request.subscribed_topic_names is None and request.subscribed_topic_regex is None
    blank = blank_field(
        MemberId=request.member_id if needs_member_id else None,
        GroupId=request.group_id,
        InstanceId=request.instance_id,
        RackId=request.rack_id,
    )
    problems = (
        (blank is not None, f"{blank} can't be empty."),
        (joins and request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request."),
        (joins and request.topic_partitions != [], "TopicPartitions must be empty when (re-)joining."),
        (
            joins and no_topics,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (leaves_temporarily and request.instance_id is None, "InstanceId can't be null."),
        (epoch < STATIC_LEAVE_EPOCH, "MemberEpoch is invalid."),
    )
    problem = first_problem(problems)
    if problem is not None:
        return problem
    if request.server_assignor is not None and request.server_assignor not in assignors:
        known = ", ".join(assignors)
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {known}."
        return HeartbeatError(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    return None


def regex_error(member: ConsumerMember, updated: ConsumerMember) -> HeartbeatError | None:
    regex = updated.subscribed_topic_regex
    if not regex or regex == member.subscribed_topic_regex:
        return None
    try:
        compile_regex(regex)
    except InvalidRegexError as error:
        message = f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}."
        return HeartbeatError(ErrorCode.INVALID_REGULAR_EXPRESSION, message)
    return None


def find_slot(
    group: ConsumerGroup, request: ConsumerGroupHeartbeatRequest, member_id: str, owned: Owned
) -> MemberSlot[ConsumerMember] | HeartbeatError:
    instance_id = request.instance_id
    if request.member_epoch == JOIN_EPOCH:
        static = group.static_member(instance_id)
        if static is None:
            return MemberSlot(group.members.get(member_id) or ConsumerMember(member_id))
        if static.classic is None and static.member_epoch != STATIC_LEAVE_EPOCH:
            return unreleased_instance(member_id, instance_id, static.member_id)
        return MemberSlot(static.returning_as(member_id), static)
    member = group.find_member(member_id, instance_id)
    if isinstance(member, HeartbeatError):
        return member
    return _epoch_error(member, request.member_epoch, owned) or MemberSlot(member)


def _epoch_error(member: ConsumerMember, epoch: int, owned: Owned) -> HeartbeatError | None:
    """Accept the current epoch, or the previous one if all owned partitions are assigned (a lost response)."""
    lost_response = epoch == member.previous_member_epoch and owned is not None and _was_assigned(member, owned)
    if epoch == member.member_epoch or (epoch < member.member_epoch and lost_response):
        return None
    return fenced_epoch("consumer", member, epoch)


def _was_assigned(member: ConsumerMember, owned: Iterable[tuple[bytes, Sequence[int]]]) -> bool:
    return all(partition in member.assigned.get(topic, ()) for topic, partitions in owned for partition in partitions)
