"""Requests that a broker passes on to the controller, as long as it does not reach that one.

Follows Kafka's ForwardingManagerImpl: what could not be passed on within a minute is answered REQUEST_TIMED_OUT,
whatever time the client has given its request. In one process a request is passed on by handling it.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from sluice.broker.requests.context import Outcome, RequestContext
from sluice.protocol.apis import (
    alter_client_quotas,
    alter_configs,
    alter_partition_reassignments,
    alter_user_scram_credentials,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_topics,
    elect_leaders,
    incremental_alter_configs,
    list_partition_reassignments,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message
from sluice.purgatory.operation import DelayedOperation

if TYPE_CHECKING:
    from sluice.broker.handlers.services import AllServices

    from .dispatcher import Route

# How long BrokerServer lets its channel to the controller try.
FORWARDING_TIMEOUT_MS = 60_000
_CODE = ErrorCode.REQUEST_TIMED_OUT


class Forwarded(DelayedOperation):
    """A request that waits for the controller to be reached."""

    __slots__ = ("_answer", "_broker", "_ctx", "_request")

    def __init__(self, ctx: RequestContext, request: Message, broker: "AllServices") -> None:
        super().__init__(FORWARDING_TIMEOUT_MS)
        self._ctx = ctx
        self._request = request
        self._broker = broker
        self._answer: Callable[[], Message | Outcome] = self._time_out

    def pass_on(self) -> None:
        """The controller is reached; does nothing for a request that was answered already."""
        route: Route = self._ctx.route  # type: ignore[assignment]  # the dispatcher sets it
        self._answer = partial(route.serve, self._ctx, self._request, self._broker)
        self.force_complete()

    def on_complete(self) -> None:
        self._ctx.responder.complete(self._ctx, self._answer)

    def _time_out(self) -> Message:
        self._ctx.error_code = _CODE
        return timed_out(self._request)


def timed_out(request: Message) -> Message:
    """What says of all that was asked for that time ran out, without a message but where Kafka has one."""
    match request:
        case alter_client_quotas.AlterClientQuotasRequest():
            return alter_client_quotas.AlterClientQuotasResponse(
                entries=[
                    alter_client_quotas.EntryResult(error_code=_CODE, error_message=_CODE.message, entity=entry.entity)
                    for entry in request.entries
                ]
            )
        case alter_configs.AlterConfigsRequest():
            return alter_configs.AlterConfigsResponse(
                responses=[
                    alter_configs.AlterConfigsResourceResponse(_CODE, None, one.resource_type, one.resource_name)
                    for one in request.resources
                ]
            )
        case alter_partition_reassignments.AlterPartitionReassignmentsRequest():
            return _reassignments_timed_out(request)
        case alter_user_scram_credentials.AlterUserScramCredentialsRequest():
            users = {one.name for one in request.deletions} | {one.name for one in request.upsertions}
            return alter_user_scram_credentials.AlterUserScramCredentialsResponse(
                results=[
                    alter_user_scram_credentials.AlterUserScramCredentialsResult(user, _CODE, None)
                    for user in sorted(users)
                ]
            )
        case create_acls.CreateAclsRequest():
            return create_acls.CreateAclsResponse(
                results=[create_acls.AclCreationResult(_CODE, None) for _ in request.creations]
            )
        case create_partitions.CreatePartitionsRequest():
            return create_partitions.CreatePartitionsResponse(
                results=[create_partitions.CreatePartitionsTopicResult(one.name, _CODE) for one in request.topics]
            )
        case create_topics.CreateTopicsRequest():
            return create_topics.CreateTopicsResponse(
                topics=[
                    create_topics.CreatableTopicResult(name=one.name, error_code=_CODE, error_message=None)
                    for one in request.topics
                ]
            )
        case delete_acls.DeleteAclsRequest():
            return delete_acls.DeleteAclsResponse(
                filter_results=[delete_acls.DeleteAclsFilterResult(_CODE, None) for _ in request.filters]
            )
        case delete_topics.DeleteTopicsRequest():
            topics = request.topics or [delete_topics.DeleteTopicState(name=name) for name in request.topic_names]
            return delete_topics.DeleteTopicsResponse(
                responses=[delete_topics.DeletableTopicResult(one.name, one.topic_id, _CODE) for one in topics]
            )
        case elect_leaders.ElectLeadersRequest():
            return _elections_timed_out(request)
        case incremental_alter_configs.IncrementalAlterConfigsRequest():
            return incremental_alter_configs.IncrementalAlterConfigsResponse(
                responses=[
                    incremental_alter_configs.AlterConfigsResourceResponse(
                        _CODE, None, one.resource_type, one.resource_name
                    )
                    for one in request.resources
                ]
            )
        case list_partition_reassignments.ListPartitionReassignmentsRequest():
            return _list_timed_out(request)
    raise AssertionError(f"{request!r} is not for the controller")


def _reassignments_timed_out(
    request: alter_partition_reassignments.AlterPartitionReassignmentsRequest,
) -> alter_partition_reassignments.AlterPartitionReassignmentsResponse:
    return alter_partition_reassignments.AlterPartitionReassignmentsResponse(
        error_code=_CODE,
        error_message=None,
        responses=[
            alter_partition_reassignments.ReassignableTopicResponse(
                topic.name,
                [
                    alter_partition_reassignments.ReassignablePartitionResponse(one.partition_index, _CODE, None)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def _elections_timed_out(request: elect_leaders.ElectLeadersRequest) -> elect_leaders.ElectLeadersResponse:
    return elect_leaders.ElectLeadersResponse(
        error_code=_CODE,
        replica_election_results=[
            elect_leaders.ReplicaElectionResult(
                topic.topic, [elect_leaders.PartitionResult(index, _CODE, None) for index in topic.partitions]
            )
            for topic in request.topic_partitions or ()
        ],
    )


def _list_timed_out(
    request: list_partition_reassignments.ListPartitionReassignmentsRequest,
) -> list_partition_reassignments.ListPartitionReassignmentsResponse:
    """Kafka names what was asked for, each partition without replicas."""
    return list_partition_reassignments.ListPartitionReassignmentsResponse(
        error_code=_CODE,
        error_message=None,
        topics=[
            list_partition_reassignments.OngoingTopicReassignment(
                topic.name,
                [list_partition_reassignments.OngoingPartitionReassignment(index) for index in topic.partition_indexes],
            )
            for topic in request.topics or ()
        ],
    )
