"""The demo's broker: a separate process that always ends with the demo."""

import asyncio
import os
import signal

import pytest

from sluice.cli.demo import broker
from sluice.cli.demo.broker import running_broker
from sluice.errors import SluiceError


async def _is_listening(bootstrap: str) -> bool:
    host, port = bootstrap.split(":")
    try:
        _, writer = await asyncio.open_connection(host, int(port))
    except OSError:
        return False
    writer.close()
    await writer.wait_closed()
    return True


async def test_broker_runs_with_its_properties_and_ends_with_its_block() -> None:
    addresses = []
    async with running_broker(["quota.producer.default=1M"]) as broker:
        addresses.append(broker.bootstrap)
        assert (await broker.scrape()).throttle_s("Produce", "bronze") == 0.0
    assert not await _is_listening(addresses[0])


async def test_environment_of_another_kafka_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_LISTENERS", "nonsense")
    async with running_broker([]) as broker:
        assert broker.bootstrap.startswith("127.0.0.1:")


async def test_broker_ends_when_its_block_fails() -> None:
    addresses = []

    async def failing() -> None:
        async with running_broker([]) as broker:
            addresses.append(broker.bootstrap)
            raise KeyError("an error of the test")

    with pytest.raises(KeyError, match="an error of the test"):
        await failing()
    assert not await _is_listening(addresses[0])


async def test_broker_that_does_not_stop_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker, "_STOP_TIMEOUT_S", 0.05)
    processes = []
    create = asyncio.create_subprocess_exec

    async def stubborn(*command: str, **options: object) -> asyncio.subprocess.Process:
        process = await create(*command, **options)  # type: ignore[arg-type]  # handed on as they came
        processes.append(process)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", stubborn)
    async with running_broker([]):
        os.kill(processes[0].pid, signal.SIGSTOP)  # it ignores SIGTERM
    assert processes[0].returncode == -signal.SIGKILL


async def test_broker_that_does_not_start_is_reported_with_its_message() -> None:
    with pytest.raises(SluiceError, match=r"did not start: Error: .*default: expected .*, got much"):
        async with running_broker(["quota.producer.default=much"]):
            pass


async def test_stopped_broker_cannot_be_scraped() -> None:
    async with running_broker([]) as broker:
        pass
    with pytest.raises(SluiceError, match="cannot read the broker's metrics"):
        await broker.scrape()
