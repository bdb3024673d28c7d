"""The reference client's examples survive an outage: the consumer reads every record that the producer sends."""

import asyncio
import runpy
from pathlib import Path

import pytest

from sluice import Broker

EXAMPLES = Path(__file__).parents[4] / "examples"


async def test_producer_and_consumer_examples_survive_a_broker_outage(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES)
    producer, consumer = (
        runpy.run_path(str(EXAMPLES / f"reference_{name}.py"))["main"] for name in ("producer", "consumer")
    )
    async with Broker() as broker:
        running = [asyncio.ensure_future(one(broker.bootstrap, "t")) for one in (producer, consumer)]
        await asyncio.sleep(10)
        await broker.cluster.stop(1)
        await asyncio.sleep(15)
        await broker.cluster.start(1)
        await asyncio.sleep(30)
        for task in running:
            task.cancel()
        await asyncio.wait(running)
    lines = capsys.readouterr().out.splitlines()
    assert "assigned t-0" in lines
    sent = [line.split()[0] for line in lines if " is at t-0 " in line]
    read = [line.split("b'")[1].rstrip("'") for line in lines if line.startswith("t-0 ")]
    assert len(sent) >= 35, "one per second, except while no broker serves metadata"
    assert sent == [str(number) for number in range(len(sent))]
    assert read[:35] == sent[:35]
