"""The word-count example survives an outage, and logs it line by line."""

import asyncio
import logging
import runpy
from pathlib import Path

import pytest

from tests.support.streaming import streaming

EXAMPLE = Path(__file__).parents[4] / "examples" / "word_count.py"


async def test_word_count_example_survives_and_logs_an_outage(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLE.parent)  # as for a command
    main = runpy.run_path(str(EXAMPLE))["main"]
    caplog.set_level(logging.INFO, logger="sluice.streams")
    async with streaming({"unused": 1}) as stage:
        running = asyncio.ensure_future(main(stage.broker.bootstrap))
        await asyncio.sleep(5)
        fault = stage.broker.faults.add("black-hole", api="OffsetCommit")
        await stage.write("lines", b"to be or not to be")
        await stage.broker.wait_for(fault)
        await stage.broker.cluster.stop(1)
        fault.remove()
        await asyncio.sleep(30)
        await stage.broker.cluster.start(1)
        await stage.write("lines", b"that is to say")
        await asyncio.sleep(30)
        running.cancel()
        await asyncio.wait([running])
    counted = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert {word: int(times) for word, times in counted} == {
        "to": 3,
        "be": 2,
        "or": 1,
        "not": 1,
        "that": 1,
        "is": 1,
        "say": 1,
    }
    followed = iter(caplog.messages)
    for line in [
        "streams word-count: created -> rebalancing",
        "created topics: word-count-counts-changelog, word-count-words-repartition",
        "tasks: 0_0 0_1 1_0 1_1",
        "streams word-count: rebalancing -> running",
        "task 1_0: timeout of Consumer.commit; it will be retried, for 60000 ms at least",
    ]:
        assert line in followed, (line, caplog.messages)
