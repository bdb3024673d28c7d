"""A scenario that runs in the background of a test."""

import asyncio

from sluice import Broker
from sluice.broker.scenarios.model import Scenario, Step

RESTART = Scenario(name="restart", brokers=2, steps=(Step(at="1s", stop=1, during="2s"),))


async def test_scenario_runs_in_the_background_and_reports_its_steps() -> None:
    async with Broker(2) as broker:
        run = broker.start_scenario(RESTART)
        await asyncio.sleep(2)
        assert [step.what for step in run.steps] == ["broker 1 stops"]
        assert not run.done
        assert [step.what for step in await run.wait()] == ["broker 1 stops", "broker 1 starts"]
        assert run.done


async def test_stopped_scenario_restores_the_former_state() -> None:
    async with Broker(2) as broker:
        run = broker.start_scenario(RESTART)
        await asyncio.sleep(2)
        run.stop()
        await run.wait()
        run.stop()
        await broker.client().send("orders", b"a")
