"""Responses to parked JoinGroup and SyncGroup requests."""

from collections.abc import Collection, Hashable
from functools import partial

from sluice.broker.metadata.topic import Partition
from sluice.broker.requests.context import RequestContext
from sluice.protocol.apis.join_group import JoinGroupResponse
from sluice.protocol.apis.sync_group import SyncGroupResponse

from .runtime import GroupRuntime


class ParkedResponses:
    """Responses that are sent at the end of the event-loop iteration.

    A response lets its connection continue at once; the next request could find a half-changed group.
    """

    def __init__(self, runtime: GroupRuntime) -> None:
        self._runtime = runtime
        self._actions = runtime.host.actions
        self._ready: list[tuple[RequestContext, JoinGroupResponse | SyncGroupResponse]] = []

    def add(self, ctx: RequestContext, response: JoinGroupResponse | SyncGroupResponse) -> None:
        self._ready.append((ctx, response))
        self._actions.defer(self, self)

    def add_when_replicated(self, ctx: RequestContext, group_id: str, response: SyncGroupResponse) -> None:
        log = self._runtime.log.partition_of(group_id).log
        if log.high_watermark >= log.log_end_offset:
            self.add(ctx, response)
        else:
            self._runtime.await_replication(group_id, partial(self._replicated, ctx, group_id, response))

    def _replicated(
        self, ctx: RequestContext, group_id: str, response: SyncGroupResponse, lost: Collection[Partition]
    ) -> None:
        self.add(ctx, SyncGroupResponse(error_code=self._runtime.lost_error(group_id)) if lost else response)
        self._actions.complete()

    def check_and_complete(self, key: Hashable) -> int:
        ready, self._ready = self._ready, []
        for ctx, response in ready:
            self._send(ctx, response)
        return len(ready)

    def _send(self, ctx: RequestContext, response: JoinGroupResponse | SyncGroupResponse) -> None:
        def finish() -> JoinGroupResponse | SyncGroupResponse:
            ctx.error_code = response.error_code
            return response

        ctx.resume(finish)
