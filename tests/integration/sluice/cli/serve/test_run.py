"""The signals that stop a broker."""

import signal
from collections.abc import Iterator
from functools import partial
from threading import Timer, get_ident

import pytest

from sluice.broker.network.fair_selector import FairLoop
from sluice.cli.serve.run import stop_at_signals

_UNTIL_THE_LOOP_WAITS_S = 0.1
_GIVES_UP_AFTER_S = 30


@pytest.fixture
def restored_handlers() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("restored_handlers")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_signal_ends_a_wait_that_it_does_not_interrupt(number: signal.Signals) -> None:
    """As one does that comes just before the wait; here another thread receives it."""
    loop = FairLoop()
    ended_by: list[str] = []

    def end(by: str) -> None:
        ended_by.append(by)
        loop.stop()

    sender = Timer(_UNTIL_THE_LOOP_WAITS_S, lambda: signal.pthread_kill(get_ident(), number))
    stop_at_signals(loop, partial(end, "signal"))
    loop.call_soon(sender.start)
    loop.call_later(_GIVES_UP_AFTER_S, end, "timeout")
    loop.run_forever()
    loop.close()
    assert ended_by == ["signal"]
