"""The embedded asynchronous broker: configuration, admin port, scenarios and reset."""

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

import sluice
from sluice import Broker
from sluice.broker.scenarios.model import Scenario, Step
from sluice.errors import SluiceError
from sluice.journal_events import BrokerState, ScenarioStep
from tests.support.local_broker import request_metadata


@pytest.mark.parametrize("name", ["Broker", "SyncBroker"])
def test_broker_is_imported_lazily(name: str) -> None:
    script = f"import sluice, sys; assert 'asyncio' not in sys.modules; print(sluice.{name}.__name__)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{name}\n"
    with pytest.raises(AttributeError, match="no attribute 'RemoteBroker'"):
        sluice.RemoteBroker  # noqa: B018


async def test_setting_without_effect_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "sluice")
    async with Broker(config={"background.threads": 8}):
        assert caplog.messages == ["config: Kafka properties without effect: background.threads"]


async def test_admin_port_is_optional() -> None:
    async with Broker(2, admin_port=0) as broker:
        assert broker.admin is not None

        def described() -> object:
            with urlopen(Request(f"{broker.admin}/api/v1/cluster")) as response:
                return json.load(response)

        found = await asyncio.to_thread(described)
        assert isinstance(found, dict)
        assert [each["listeners"]["PLAINTEXT"] for each in found["brokers"]] == list(broker.brokers.values())


async def test_stopped_broker_is_readable_but_accepts_no_change() -> None:
    async with Broker() as broker:
        await broker.cluster.create_topic("t")
        await request_metadata(broker.bootstrap)
    assert broker.cluster.partition("t", 0).leader == 1
    assert [request.api for request in broker.journal.requests(client_id="wire")] == ["Metadata"]
    with pytest.raises(SluiceError, match="the broker has stopped"):
        await broker.cluster.stop(1)
    with pytest.raises(SluiceError, match="a broker can be started only once"):
        await broker.__aenter__()


# -- scenarios ---------------------------------------------------------------------------------------------------------

RESTART = """
name = "restart"
brokers = 2
[[steps]]
at = 0
stop = 1
during = 20
"""


async def test_scenario_in_a_file_runs(tmp_path: Path) -> None:
    file = tmp_path / "restart.toml"
    file.write_text(RESTART)
    async with Broker(2) as broker:
        steps = await broker.run_scenario(file)
        assert [(step.what, step.problem) for step in steps] == [("broker 1 stops", ""), ("broker 1 starts", "")]
        states = await broker.wait_for(BrokerState, times=4)
        assert [state.state for state in states if state.state in ("stopped", "running")] == ["stopped", "running"]


async def test_scenario_ends_with_the_waiting_task() -> None:
    async with Broker(2) as broker:
        scenario = Scenario(name="long", brokers=2, steps=(Step(at=0, stop=1, during="1m"),))
        running = asyncio.ensure_future(broker.run_scenario(scenario))
        await broker.wait_for(BrokerState)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await broker.wait_for(ScenarioStep, where=lambda step: step.what == "is stopped")
        await request_metadata(broker.brokers[1])  # the broker runs again


async def test_reset_restores_the_initial_state_at_the_same_addresses() -> None:
    async with Broker(3, admin_port=0) as broker:
        where = (broker.bootstrap, broker.admin)
        await broker.client("shop").send("orders", b"one pizza")
        broker.quota(produce="100k")
        broker.faults.add("close")
        await broker.cluster.stop(2)
        await broker.reset()
        assert (broker.bootstrap, broker.admin) == where
        assert (broker.quotas, broker.faults.list(), broker.journal.last_seq) == ([], [], 0)
        (written,) = await broker.client("shop").send("orders", b"another")
        assert written.offset == 0
        await broker.cluster.stop(2)


async def test_reset_is_rejected_with_log_dirs(tmp_path: Path) -> None:
    async with Broker(config={"log.dirs": str(tmp_path)}) as broker:
        with pytest.raises(SluiceError, match=r"reset: not supported with log\.dirs"):
            await broker.reset()


async def test_effective_quotas_are_returned() -> None:
    async with Broker() as broker:
        with broker.quota(client_id="shop", produce="100k", request_percentage=50), broker.quota(fetch=1):
            assert broker.quotas == [
                ({"client-id": "shop"}, {"producer_byte_rate": 100_000.0, "request_percentage": 50.0}),
                ({"client-id": None}, {"consumer_byte_rate": 1.0}),
            ]
        assert broker.quotas == []
