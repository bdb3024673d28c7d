"""Responses that wait until all replicas have the records of a group: what a client knows must not be lost with the
leader of a partition of __consumer_offsets. Follows the deferred events of Kafka's CoordinatorRuntime.

The coordinator continues meanwhile. If another broker becomes the leader before the records are replicated, they may be
lost, and the client is sent to the new coordinator. Offsets that may still be lost are not returned either, where Kafka
returns the previous ones unless the client requires stable offsets.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from sluice.broker.metadata.topic import Partition
from sluice.broker.replica.delayed_append import await_replication
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

if TYPE_CHECKING:
    from sluice.broker.handlers.services import GroupServices

Lost = Mapping[str, ErrorCode]  # by group id: the error of a group whose records may be lost
_NOTHING_LOST: Lost = {}


def respond_when_replicated(
    ctx: RequestContext, broker: "GroupServices", group_ids: Iterable[str], respond: Callable[[Lost], Message]
) -> Message | Outcome:
    """Respond with `respond(lost)` once the replicas have the records of these groups.

    A group is lost if its partition has a new leader, or if replication takes longer than `offsets.commit.timeout.ms`.
    """
    groups = broker.groups
    required: dict[Partition, int] = {}
    by_partition: dict[Partition, list[str]] = {}
    for group_id in group_ids:
        partition = groups.log.partition_of(group_id)
        log = partition.log
        if log.high_watermark < log.log_end_offset:
            required[partition] = log.log_end_offset
            by_partition.setdefault(partition, []).append(group_id)
    if not required:
        return respond(_NOTHING_LOST)

    def start(done: Callable[[Collection[Partition]], None]) -> None:
        await_replication(broker, required, groups.write_timeout_ms, done)

    def answer(missing: Collection[Partition]) -> Message:
        return respond({group_id: groups.lost_error(group_id) for one in missing for group_id in by_partition[one]})

    return respond_when_done(ctx, start, answer)
