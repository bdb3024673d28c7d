"""ConsumerGroupHeartbeat, key 68, versions 0-1: all that a member of a consumer group does (KIP-848).

v1 has clients make their members' ids (KIP-1082), and knows subscriptions by regular expressions. Follows Kafka's
GroupCoordinatorService.consumerGroupHeartbeat; what happens then is told in broker/groups/consumer_heartbeat.py.
"""

from sluice.broker.context import RequestContext
from sluice.broker.groups.consumer_heartbeat import Refused
from sluice.protocol.apis.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, ConsumerGroupHeartbeatResponse


def handle(ctx: RequestContext, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    """The member's epoch and, if it changed, its assignment; or why the heartbeat changes nothing."""
    answer = ctx.broker.groups.consumer.heartbeat(ctx, request)
    if isinstance(answer, Refused):
        ctx.error_code = answer.error
        return ConsumerGroupHeartbeatResponse(error_code=answer.error, error_message=answer.message)
    return answer
