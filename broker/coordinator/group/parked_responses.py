"""Answers to JoinGroup and SyncGroup requests that were parked until the group had one."""

from collections.abc import Collection, Hashable
from functools import partial
from typing import TYPE_CHECKING

from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.join_group import JoinGroupResponse
from sluice.protocol.apis.sync_group import SyncGroupResponse

if TYPE_CHECKING:
    from .coordinator import GroupCoordinator


class Answers:
    """Sends answers at the end of the turn.

    An answered connection goes on with its next request at once. To answer in the middle of a change would let that
    request see, and change, a group that is half changed.
    """

    __slots__ = ("_coordinator", "_dispatcher", "_ready")

    def __init__(self, coordinator: "GroupCoordinator") -> None:
        self._coordinator = coordinator
        self._dispatcher = coordinator.broker.dispatcher
        self._ready: list[tuple[RequestContext, JoinGroupResponse | SyncGroupResponse]] = []

    def add(self, ctx: RequestContext, response: JoinGroupResponse | SyncGroupResponse) -> None:
        """Answers a parked request with `response`; one whose client left is dropped."""
        self._ready.append((ctx, response))
        self._dispatcher.check_after_turn(self, self)

    def add_when_written(self, ctx: RequestContext, group_id: str, response: SyncGroupResponse) -> None:
        """The same once all replicas have what the group has written: an assignment must not be lost."""
        log = self._coordinator.log.partition_of(group_id).log
        if log.high_watermark >= log.log_end_offset:
            self.add(ctx, response)
        else:
            self._coordinator.await_replicas(group_id, partial(self._written, ctx, group_id, response))

    def _written(
        self, ctx: RequestContext, group_id: str, response: SyncGroupResponse, missing: Collection[Partition]
    ) -> None:
        self.add(ctx, SyncGroupResponse(error_code=self._coordinator.lost_error(group_id)) if missing else response)
        self._dispatcher.end_turn()  # no read ends here that would send it

    def check_and_complete(self, key: Hashable) -> int:
        """Sends what is there, as a purgatory completes what it can; returns how much that was."""
        ready, self._ready = self._ready, []
        for ctx, response in ready:
            self._send(ctx, response)
        return len(ready)

    def _send(self, ctx: RequestContext, response: JoinGroupResponse | SyncGroupResponse) -> None:
        def answer() -> JoinGroupResponse | SyncGroupResponse:
            ctx.error_code = response.error_code
            return response

        self._dispatcher.complete(ctx, answer)
