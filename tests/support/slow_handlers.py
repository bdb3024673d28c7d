"""Handlers that take time on the broker's one thread, in virtual time."""

import pytest

from sluice.broker.broker import Broker, Handle
from sluice.broker.exchange.registry import Handler
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.protocol.message import Message
from tests.support.virtual_broker import VirtualBroker


def slow_handlers(monkeypatch: pytest.MonkeyPatch, broker: VirtualBroker, work_ms: float) -> None:
    """Make the first request of each API and version take `work_ms` to handle."""
    load = Handler.load

    def load_slow(handler: Handler) -> Handle:
        handle = load(handler)

        def work(ctx: RequestContext, request: Message, services: Broker) -> Message | Outcome:
            broker.clock.advance(work_ms)
            return handle(ctx, request, services)

        return work

    monkeypatch.setattr(Handler, "load", load_slow)
