"""Responses that wait until the records of a group are replicated, so that a leader change cannot undo them.

Follows the deferred events of Kafka's CoordinatorRuntime. If another broker becomes the leader first, the client gets
NOT_COORDINATOR. Different: OffsetFetch also waits; Kafka returns the previous offsets unless the client requires stable
ones.
"""

from collections.abc import Callable, Collection, Iterable, Mapping

from sluice.broker.broker import Broker
from sluice.broker.metadata.topic import Partition
from sluice.broker.replica.delayed_append import await_replication
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.requests.deferred_response import respond_when_done
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

ReplicationErrors = Mapping[str, ErrorCode]
_NO_ERRORS: ReplicationErrors = {}


def respond_after_change(
    ctx: RequestContext,
    broker: Broker,
    group_id: str,
    response: Message,
    error_response: Callable[[ErrorCode], Message],
) -> Message | Outcome:
    """Respond with `response` after the records of a group are replicated, or with an error if they may be lost."""

    def respond(errors: ReplicationErrors) -> Message:
        if not errors:
            return response
        ctx.error_code = errors[group_id]
        return error_response(errors[group_id])

    return respond_when_replicated(ctx, broker, [group_id], respond)


def respond_when_replicated(
    ctx: RequestContext, broker: Broker, group_ids: Iterable[str], respond: Callable[[ReplicationErrors], Message]
) -> Message | Outcome:
    """Respond with `respond(errors)` after the records of these groups are replicated.

    `errors`: groups whose partition has a new leader or is not replicated within `offsets.commit.timeout.ms`.
    """
    groups = broker.groups
    required: dict[Partition, int] = {}
    by_partition: dict[Partition, list[str]] = {}
    for group_id in group_ids:
        partition = groups.log.existing_partition_of(group_id)
        if partition is None:
            continue
        log = partition.log
        if log.high_watermark < log.log_end_offset:
            required[partition] = log.log_end_offset
            by_partition.setdefault(partition, []).append(group_id)
    if not required:
        return respond(_NO_ERRORS)

    def start(done: Callable[[Collection[Partition]], None]) -> None:
        await_replication(broker.replicas, required, groups.write_timeout_ms, done)

    def respond_missing(missing: Collection[Partition]) -> Message:
        return respond({group_id: groups.lost_error(group_id) for one in missing for group_id in by_partition[one]})

    return respond_when_done(ctx, start, respond_missing)
