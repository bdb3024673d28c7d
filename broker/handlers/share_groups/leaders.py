"""The current leaders that responses of share groups report after a move (as KIP-951 for Fetch)."""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.config.broker_config import Endpoint
from sluice.protocol.errors import ErrorCode

_HAS_MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


class Leaders:
    def __init__(self, ctx: RequestContext, broker: Broker) -> None:
        self._ctx = ctx
        self._broker = broker
        self.endpoints: dict[int, Endpoint] = {}

    def after(self, topic_id: bytes, index: int, code: int) -> tuple[int, int]:
        metadata = self._broker.metadata
        topic = metadata.topics_by_id.get(topic_id)
        partition = None if topic is None or code not in _HAS_MOVED else topic.partition(index)
        known = None if partition is None else metadata.leadership(partition)
        if known is None:
            return 0, 0
        leader = metadata.leader(known)
        if leader is not None:
            self.endpoints[leader.node_id] = self._ctx.session.endpoint_of(leader)
        return known.leader, known.leader_epoch
