"""Start offsets of share groups: describing, altering and deleting them, and deleting them with the group (KIP-932).

Follows Kafka's GroupCoordinatorService and GroupMetadataManager. The share coordinator has the offsets, so each method
reports its result to a callback.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial

from sluice.broker.coordinator.group.group import HeartbeatError
from sluice.broker.coordinator.group.modern_group import wrong_group
from sluice.broker.coordinator.group.runtime import GroupRuntime
from sluice.broker.coordinator.share.persisted import NO_OFFSET, PartitionSummary, ShareErrors, ShareSummaries
from sluice.broker.metadata.topic import Topic
from sluice.broker.requests.context import Sliced
from sluice.protocol.apis import alter_share_group_offsets as alter_api
from sluice.protocol.apis import delete_share_group_offsets as delete_api
from sluice.protocol.apis import describe_share_group_offsets as describe_api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.types import ZERO_UUID
from sluice.protocol.uuids import printed_uuid

from .group import ShareGroup
from .heartbeat import ShareProtocol
from .state_partitions import StatePartitions, TopicState

_UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

DescribedTopics = list[describe_api.DescribeShareGroupOffsetsResponseTopic]


class ShareOffsets:
    def __init__(self, runtime: GroupRuntime, protocol: ShareProtocol) -> None:
        self._runtime = runtime
        self._protocol = protocol
        self._initialization = protocol.initialization
        self._cluster = runtime.host.cluster

    # -- describing ----------------------------------------------------------------------------------------------------

    def describe(
        self,
        group_id: str,
        requested: Mapping[str, Collection[int]] | None,
        done: Callable[[Callable[[], DescribedTopics]], None],
        sliced: Sliced,
    ) -> None:
        """Describe partitions; `done` gets a function that builds the result.

        requested: by topic name, in a dict that pauses if it is long; None for all initialized ones
        """
        topics = self._cluster.topics
        known: dict[str, Topic] = {}  # now: topics may be created or deleted before `build`
        if requested is None:
            partitions = self._initialized(group_id)
        else:
            known.update((name, topics[name]) for name in requested if name in topics)
            partitions = {
                topic.topic_id: _existing(topic, sliced(requested[name])) for name, topic in sliced(known.items())
            }

        def build(summaries: ShareSummaries) -> DescribedTopics:
            found = [self._described_topic(*one, sliced) for one in sliced(summaries.items())]
            if requested is None:
                return found
            for topic in sliced(found):
                there = summaries[topic.topic_id]
                wanted = sliced(requested.get(topic.topic_name, ()))
                topic.partitions += _without_offsets(index for index in wanted if index not in there)
            return found + [
                describe_api.DescribeShareGroupOffsetsResponseTopic(
                    topic_name=name, partitions=_without_offsets(sliced(some))
                )
                for name, some in requested.items()
                if name not in known
            ]

        if partitions:
            read_summary = self._runtime.share_persister.read_summary
            read_summary(group_id, partitions, lambda summaries: done(partial(build, summaries)), sliced)
        else:
            done(partial(build, {}))

    def _initialized(self, group_id: str) -> dict[bytes, Sequence[int]]:
        group = self._runtime.groups.get(group_id)
        if not isinstance(group, ShareGroup) or group.partitions is None:
            return {}
        existing = self._cluster.topics_by_id
        states = group.partitions.initialized.items()
        return {topic_id: sorted(state.partitions) for topic_id, state in states if topic_id in existing}

    def _described_topic(
        self, topic_id: bytes, summaries: Mapping[int, PartitionSummary], sliced: Sliced
    ) -> describe_api.DescribeShareGroupOffsetsResponseTopic:
        return describe_api.DescribeShareGroupOffsetsResponseTopic(
            topic_name=self._initialization.name_of(topic_id),
            topic_id=topic_id,
            partitions=[self._described(topic_id, index, summary) for index, summary in sliced(summaries.items())],
        )

    def _described(
        self, topic_id: bytes, index: int, summary: PartitionSummary
    ) -> describe_api.DescribeShareGroupOffsetsResponsePartition:
        described = describe_api.DescribeShareGroupOffsetsResponsePartition(
            partition_index=index, start_offset=NO_OFFSET
        )
        if summary.error:
            return described
        described.start_offset, described.leader_epoch = summary.start_offset, summary.leader_epoch
        if NO_OFFSET in (summary.start_offset, summary.delivery_complete_count):
            return described
        end_offset = self._end_offset(topic_id, index)
        if isinstance(end_offset, ErrorCode):
            return describe_api.DescribeShareGroupOffsetsResponsePartition(
                partition_index=index, error_code=end_offset, error_message=end_offset.message
            )
        lag = end_offset - summary.start_offset - summary.delivery_complete_count
        described.lag = (lag + 2**63) % 2**64 - 2**63  # wraps as in Java
        return described

    def _end_offset(self, topic_id: bytes, index: int) -> int | ErrorCode:
        topic = self._cluster.topics_by_id.get(topic_id)
        if topic is None or index >= len(topic.partitions):
            return ErrorCode.LEADER_NOT_AVAILABLE
        partition = topic.partitions[index]
        leader = self._runtime.host.leader_of(partition)
        return ErrorCode.LEADER_NOT_AVAILABLE if leader is None else partition.log.high_watermark

    # -- altering ------------------------------------------------------------------------------------------------------

    def alter(
        self,
        group_id: str,
        topics: Iterable[alter_api.AlterShareGroupOffsetsRequestTopic],
        done: "AlterDone",
        sliced: Sliced,
    ) -> None:
        """Set the start offsets of an empty group, created if missing; `done` gets a function that responds."""
        now_ms = self._runtime.now_ms()
        response = alter_api.AlterShareGroupOffsetsResponse()
        offsets: dict[bytes, dict[int, int]] = {}
        states: dict[bytes, TopicState] = {}
        for requested in topics:
            topic = self._cluster.topics.get(requested.topic_name)
            response.responses.append(_altered_topic(requested, topic))
            if topic is None:
                continue
            valid = _valid_offsets(requested, topic)
            if valid:
                offsets.setdefault(topic.topic_id, {}).update(valid)
            # As in Kafka, a topic without valid partitions creates the group, too.
            states[topic.topic_id] = TopicState(topic.name, frozenset(valid), now_ms)
        group = self._empty_group(group_id, creates=True)
        if isinstance(group, HeartbeatError):
            done(partial(_alter_error, group))
            return
        if not states:
            done(lambda: response)
            return
        self._runtime.groups[group_id] = group
        error = self._initialization.write(group, (group.partitions or StatePartitions()).start(states))
        if error:
            done(partial(_alter_error, HeartbeatError(error, None)))
            return
        if not offsets:
            done(lambda: response)
            return
        negative = ((topic_id, index) for topic_id, some in offsets.items() for index in sliced(some) if index < 0)
        if (found := next(negative, None)) is not None:  # as in Kafka, an internal error of the persister
            printed = f"{group_id} {printed_uuid(found[0])} {found[1]}"
            message = f"Initialize share group parameters has invalid partitionId - {printed}"
            done(partial(_alter_error, HeartbeatError(ErrorCode.UNKNOWN_SERVER_ERROR, message)))
            return

        def finish(results: "ShareErrors") -> None:
            if not any(error for errors in results.values() for error in errors.values()):
                self._initialization.apply(group, results)
            done(partial(_with_errors, response, results, sliced))

        self._runtime.share_persister.initialize_state(group_id, offsets, group.group_epoch, finish, sliced)

    # -- deleting ------------------------------------------------------------------------------------------------------

    def delete(self, group_id: str, topic_names: Sequence[str], done: "DeleteDone") -> None:
        group = self._empty_group(group_id, creates=False)
        if isinstance(group, HeartbeatError):
            message = group.message or group.error.message
            done(delete_api.DeleteShareGroupOffsetsResponse(error_code=group.error, error_message=message))
            return
        response = delete_api.DeleteShareGroupOffsetsResponse()
        if group.partitions is None:
            done(response)
            return
        deleted: dict[bytes, Sequence[int]] = {}
        for name in topic_names:
            topic = self._cluster.topics.get(name)
            partitions = None if topic is None else _state_of(group.partitions, topic)
            if topic is None or partitions is None:
                message = _UNKNOWN.message if topic is None else "There is no offset information to delete."
                response.responses.append(_deleted_topic(name, ZERO_UUID, _UNKNOWN, message))
            else:
                deleted[topic.topic_id] = partitions
        error = self._initialization.write(group, group.partitions.delete(deleted.keys()))
        if error:
            done(delete_api.DeleteShareGroupOffsetsResponse(error_code=error, error_message=error.message))
        elif not deleted:
            done(response)
        else:
            finish = partial(self._finish_delete, group, response, done)
            self._runtime.share_persister.delete_state(group_id, deleted, finish)

    def _finish_delete(
        self,
        group: ShareGroup,
        response: delete_api.DeleteShareGroupOffsetsResponse,
        done: "DeleteDone",
        results: "ShareErrors",
    ) -> None:
        name_of = self._initialization.name_of
        failed = {topic_id: error for topic_id, errors in results.items() if (error := _first_error(errors))}
        for topic_id, error in failed.items():
            response.responses.append(_deleted_topic(name_of(topic_id), topic_id, error, error.message))
        deleted = [topic_id for topic_id in results if topic_id not in failed]
        if deleted and self._runtime.groups.get(group.group_id) is group and group.partitions is not None:
            error = self._initialization.write(group, group.partitions.deleted(deleted))
            if error:
                done(delete_api.DeleteShareGroupOffsetsResponse(error_code=error, error_message=error.message))
                return
            response.responses[:0] = [_deleted_topic(name_of(one), one, ErrorCode.NONE, None) for one in deleted]
        done(response)

    def delete_all(self, group_ids: Iterable[str], done: Callable[[Mapping[str, ErrorCode]], None]) -> None:
        results: dict[str, ErrorCode] = {}
        waiting: set[str] = set()
        requests = []
        for group_id in group_ids:
            group = self._runtime.groups.get(group_id)
            if isinstance(group, ShareGroup) and group.is_empty and group.partitions is not None:
                partitions = self._all_partitions(group.partitions)
                deleting = StatePartitions(deleting=frozenset(partitions))
                error = self._initialization.write(group, deleting)
                if error:
                    results[group_id] = error
                elif partitions:
                    requests.append((group_id, partitions))
        waiting.update(group_id for group_id, _ in requests)

        def deleted(group_id: str, errors: "ShareErrors") -> None:
            waiting.discard(group_id)
            failed = [error for one in errors.values() if (error := _first_error(one))]
            if failed:
                results[group_id] = failed[0]
            if not waiting:
                done(results)

        for group_id, partitions in requests:
            self._runtime.share_persister.delete_state(group_id, partitions, partial(deleted, group_id))
        if not requests:
            done(results)

    def _all_partitions(self, partitions: StatePartitions) -> dict[bytes, Sequence[int]]:
        existing = (self._cluster.topics_by_id.get(topic_id) for topic_id in partitions.deleting)
        retried = {
            topic.topic_id: TopicState(topic.name, frozenset(range(len(topic.partitions))), 0)
            for topic in existing
            if topic is not None
        }
        return {topic_id: sorted(state.partitions) for topic_id, state in partitions.to_delete(retried).items()}

    def _empty_group(self, group_id: str, *, creates: bool) -> ShareGroup | HeartbeatError:
        error = self._runtime.error(group_id)
        if error:
            return HeartbeatError(error, None)
        if not creates and group_id not in self._runtime.groups:
            return wrong_group("share", group_id, None, joins=False)
        group = self._protocol.group_for(group_id, creates=creates)
        if isinstance(group, ShareGroup) and not group.is_empty:
            return HeartbeatError(ErrorCode.NON_EMPTY_GROUP, None)
        return group


AlterDone = Callable[[Callable[[], alter_api.AlterShareGroupOffsetsResponse]], None]
DeleteDone = Callable[[delete_api.DeleteShareGroupOffsetsResponse], None]


def _existing(topic: Topic, partitions: Iterable[int]) -> list[int]:
    count = len(topic.partitions)
    return [index for index in partitions if 0 <= index < count]


def _without_offsets(partitions: Iterable[int]) -> list[describe_api.DescribeShareGroupOffsetsResponsePartition]:
    return [
        describe_api.DescribeShareGroupOffsetsResponsePartition(partition_index=index, start_offset=NO_OFFSET)
        for index in partitions
    ]


def _alter_error(problem: HeartbeatError) -> alter_api.AlterShareGroupOffsetsResponse:
    message = problem.message or problem.error.message
    return alter_api.AlterShareGroupOffsetsResponse(error_code=problem.error, error_message=message)


def _with_errors(
    response: alter_api.AlterShareGroupOffsetsResponse, results: "ShareErrors", sliced: Sliced
) -> alter_api.AlterShareGroupOffsetsResponse:
    for topic in sliced(response.responses):
        errors = results.get(topic.topic_id, {})
        for one in sliced(topic.partitions):
            error = errors.get(one.partition_index, ErrorCode.NONE)
            if error and not one.error_code:
                one.error_code, one.error_message = error, error.message
    return response


def _altered_topic(
    requested: alter_api.AlterShareGroupOffsetsRequestTopic, topic: Topic | None
) -> alter_api.AlterShareGroupOffsetsResponseTopic:
    count = 0 if topic is None else len(topic.partitions)
    return alter_api.AlterShareGroupOffsetsResponseTopic(
        topic_name=requested.topic_name,
        topic_id=ZERO_UUID if topic is None else topic.topic_id,
        partitions=[
            alter_api.AlterShareGroupOffsetsResponsePartition(partition_index=one.partition_index)
            if one.partition_index < count
            else alter_api.AlterShareGroupOffsetsResponsePartition(
                partition_index=one.partition_index, error_code=_UNKNOWN, error_message=_UNKNOWN.message
            )
            for one in requested.partitions
        ],
    )


def _valid_offsets(requested: alter_api.AlterShareGroupOffsetsRequestTopic, topic: Topic) -> dict[int, int]:
    count = len(topic.partitions)
    return {one.partition_index: one.start_offset for one in requested.partitions if one.partition_index < count}


def _state_of(partitions: StatePartitions, topic: Topic) -> Sequence[int] | None:
    """Return the partitions with state, or being deleted; None if the topic has no state."""
    state = partitions.initialized.get(topic.topic_id)
    if state is not None:
        return sorted(state.partitions)
    return range(len(topic.partitions)) if topic.topic_id in partitions.deleting else None


def _deleted_topic(
    name: str, topic_id: bytes, error: ErrorCode, message: str | None
) -> delete_api.DeleteShareGroupOffsetsResponseTopic:
    return delete_api.DeleteShareGroupOffsetsResponseTopic(
        topic_name=name, topic_id=topic_id, error_code=error, error_message=message
    )


def _first_error(errors: Mapping[int, ErrorCode]) -> ErrorCode:
    return next((error for error in errors.values() if error), ErrorCode.NONE)
