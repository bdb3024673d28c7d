"""Answers that wait until all replicas have what the groups have written: what a client was told must not be lost with
the leader of a partition of __consumer_offsets. Follows the deferred events of Kafka's CoordinatorRuntime.

A coordinator goes on meanwhile. Should another broker lead before the replicas have it, what was written may be lost,
and so is what the coordinator knows: the client is told to look for the new one, and asks that again. Offsets that may
still be lost are not told either, where Kafka tells those from before unless the client wants stable ones.
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

Lost = Mapping[str, ErrorCode]  # by group id: why a group's client is not to believe what it would be told
_NOTHING_LOST: Lost = {}


def respond_when_replicated(
    ctx: RequestContext, broker: "GroupServices", group_ids: Iterable[str], respond: Callable[[Lost], Message]
) -> Message | Outcome:
    """Answers `respond(lost)`, at once where the replicas have all that these groups have written.

    Groups are lost whose leader is another one now, or whose replicas take longer than `offsets.commit.timeout.ms`.
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
