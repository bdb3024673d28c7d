"""A scenario that runs while a test goes on."""

import asyncio

from sluice import Broker, testing
from sluice.broker.scenarios.model import Scenario, Step

RESTART = Scenario(name="restart", brokers=2, steps=(Step(at="1s", stop=1, during="2s"),))


def test_it_runs_meanwhile_and_tells_of_its_steps() -> None:
    async def main() -> None:
        async with Broker(2) as broker:
            run = broker.start_scenario(RESTART)
            await asyncio.sleep(2)
            assert [step.what for step in run.steps] == ["broker 1 stops"]
            assert not run.done
            assert [step.what for step in await run.wait()] == ["broker 1 stops", "broker 1 starts"]
            assert run.done

    testing.run(main())


def test_one_that_is_stopped_leaves_all_as_it_was() -> None:
    async def main() -> None:
        async with Broker(2) as broker:
            run = broker.start_scenario(RESTART)
            await asyncio.sleep(2)
            run.stop()
            await run.wait()
            run.stop()
            await broker.client().send("orders", b"a")

    testing.run(main())
