"""Answers to JoinGroup and SyncGroup requests that were parked until the group had one."""

from collections.abc import Hashable

from sluice.broker.context import RequestContext
from sluice.broker.dispatch import Dispatcher
from sluice.protocol.apis.join_group import JoinGroupResponse
from sluice.protocol.apis.sync_group import SyncGroupResponse


class Answers:
    """Sends answers at the end of the turn.

    An answered connection goes on with its next request at once. To answer in the middle of a change would let that
    request see, and change, a group that is half changed.
    """

    __slots__ = ("_dispatcher", "_ready")

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher
        self._ready: list[tuple[RequestContext, JoinGroupResponse | SyncGroupResponse]] = []

    def add(self, ctx: RequestContext, response: JoinGroupResponse | SyncGroupResponse) -> None:
        """Answers a parked request with `response`; one whose client left is dropped."""
        self._ready.append((ctx, response))
        self._dispatcher.check_after_turn(self, self)

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
