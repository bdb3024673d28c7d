"""The validation of ConsumerGroupHeartbeat requests (KIP-848).

Follows Kafka's GroupCoordinatorService and GroupMetadataManager.
"""

from collections.abc import Iterable, Sequence

from sluice.broker.coordinator.group.group import HeartbeatError
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from sluice.protocol.errors import ErrorCode
from sluice.text.regex import InvalidRegexError, compile_regex

from .current_assignment import Owned
from .group import ConsumerGroup
from .member import JOIN_EPOCH, LEAVE_EPOCH, STATIC_LEAVE_EPOCH, ConsumerMember
from .rebalance import MemberSlot

_CLIENT_MEMBER_IDS_SINCE = 1


def request_error(
    request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]
) -> HeartbeatError | None:
    epoch = request.member_epoch
    needs_member_id = version >= _CLIENT_MEMBER_IDS_SINCE or epoch > JOIN_EPOCH or epoch == LEAVE_EPOCH
    joins, leaves_temporarily = epoch == JOIN_EPOCH, epoch == STATIC_LEAVE_EPOCH
    no_topics = request.subscribed_topic_names is None and request.subscribed_topic_regex is None
    problems = (
        (needs_member_id and _is_blank(request.member_id), "MemberId can't be empty."),
        (_is_blank(request.group_id), "GroupId can't be empty."),
        (_is_blank(request.instance_id), "InstanceId can't be empty."),
        (_is_blank(request.rack_id), "RackId can't be empty."),
        (joins and request.rebalance_timeout_ms == -1, "RebalanceTimeoutMs must be provided in first request."),
        (joins and request.topic_partitions != [], "TopicPartitions must be empty when (re-)joining."),
        (
            joins and no_topics,
            "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.",
        ),
        (leaves_temporarily and request.instance_id is None, "InstanceId can't be null."),
        (epoch < STATIC_LEAVE_EPOCH, "MemberEpoch is invalid."),
    )
    problem = next((message for is_wrong, message in problems if is_wrong), None)
    if problem is not None:
        return HeartbeatError(ErrorCode.INVALID_REQUEST, problem)
    if request.server_assignor is not None and request.server_assignor not in assignors:
        known = ", ".join(assignors)
        message = f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {known}."
        return HeartbeatError(ErrorCode.UNSUPPORTED_ASSIGNOR, message)
    return None


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


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
) -> MemberSlot | HeartbeatError:
    instance_id = request.instance_id
    if request.member_epoch == JOIN_EPOCH:
        static = None if instance_id is None else group.static_member(instance_id)
        if static is None:
            return MemberSlot(group.members.get(member_id) or ConsumerMember(member_id))
        if static.classic is None and static.member_epoch != STATIC_LEAVE_EPOCH:
            message = (
                f"Static member {member_id} with instance id {instance_id} cannot join the group because the instance "
                f"id is owned by {static.member_id} member."
            )
            return HeartbeatError(ErrorCode.UNRELEASED_INSTANCE_ID, message)
        return MemberSlot.of_returning(static, member_id)
    member = find_member(group, member_id, instance_id)
    if isinstance(member, HeartbeatError):
        return member
    return _epoch_error(member, request.member_epoch, owned) or MemberSlot(member)


def find_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember | HeartbeatError:
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            message = f"Member {member_id} is not a member of group {group.group_id}."
            return HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, message)
        return member
    member = group.static_member(instance_id)
    if member is None:
        return HeartbeatError(ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown.")
    if member.member_id != member_id:
        message = f"Static member {member_id} with instance id {instance_id} was fenced by member {member.member_id}."
        return HeartbeatError(ErrorCode.FENCED_INSTANCE_ID, message)
    return member


def _epoch_error(member: ConsumerMember, epoch: int, owned: Owned) -> HeartbeatError | None:
    """Accept the current epoch, or the previous one if all owned partitions are assigned (a lost response)."""
    lost_response = epoch == member.previous_member_epoch and owned is not None and _was_assigned(member, owned)
    if epoch == member.member_epoch or (epoch < member.member_epoch and lost_response):
        return None
    compared = "greater" if epoch > member.member_epoch else "smaller"
    message = (
        f"The consumer group member has a {compared} member epoch ({epoch}) than the one known by the group "
        f"coordinator ({member.member_epoch}). The member must abandon all its partitions and rejoin."
    )
    return HeartbeatError(ErrorCode.FENCED_MEMBER_EPOCH, message)


def _was_assigned(member: ConsumerMember, owned: Iterable[tuple[bytes, Sequence[int]]]) -> bool:
    return all(partition in member.assigned.get(topic, ()) for topic, partitions in owned for partition in partitions)
