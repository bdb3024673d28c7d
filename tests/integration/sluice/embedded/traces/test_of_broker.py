"""Traces that a broker writes: `write_trace`, and SLUICE_TRACE when an exception leaves its `with` block."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from sluice import Broker, SluiceError, SyncBroker, SyncProxy
from sluice.embedded.traces import started
from tests.support.traces import read_trace


@pytest.fixture(autouse=True)
def _folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(started, "recorder", None)  # that of the plugin, which runs this test
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLUICE_TRACE", "traces")


def send(broker: SyncBroker) -> None:
    broker.client("shop").send("orders", b"one pizza")


def test_broker_writes_its_trace(tmp_path: Path) -> None:
    async def main() -> None:
        async with Broker() as broker:
            await broker.client("shop").send("orders", b"one pizza")
            broker.write_trace(tmp_path / "running.html")
        broker.write_trace(str(tmp_path / "stopped.html"))

    asyncio.run(main())
    running, stopped = (read_trace(tmp_path / f"{name}.html") for name in ("running", "stopped"))
    assert {lane.owner for lane in running.lanes if lane.group == "client"} == {"shop"}
    assert len(stopped.marks.at) >= len(running.marks.at)
    assert running.result == ""


def test_trace_that_cannot_be_written_is_an_error_in_one_line(tmp_path: Path) -> None:
    problem = r"^\S*/none/a\.html: cannot write the trace: No such file or directory$"
    with SyncBroker() as broker, pytest.raises(SluiceError, match=problem):
        broker.write_trace(tmp_path / "none" / "a.html")
    with SyncBroker(config={"sluice.journal.events": 0}) as broker, pytest.raises(SluiceError, match="no journal"):
        broker.write_trace(tmp_path / "a.html")


def sync_broker() -> None:
    with SyncBroker() as broker:
        send(broker)
        raise ValueError("on purpose")


def broker() -> None:
    async def main() -> None:
        async with Broker() as broker:
            await broker.client("shop").send("orders", b"one pizza")
            raise ValueError("on purpose")

    asyncio.run(main())


def sync_proxy() -> None:
    with SyncBroker() as kafka:
        try:
            with SyncProxy(kafka.bootstrap) as proxy:
                send(proxy)
                raise ValueError("on purpose")
        except ValueError as error:
            left = error
    raise left


def two_brokers() -> None:
    with SyncBroker() as first, SyncBroker() as second, SyncBroker():
        send(first)
        send(second)
        raise ValueError("on purpose")


LEFT: dict[str, tuple[Callable[[], None], list[str]]] = {
    "a synchronous broker": (sync_broker, ["sync_broker"]),
    "a broker": (broker, ["broker.main"]),
    "a proxy": (sync_proxy, ["sync_proxy"]),
    "two brokers with events, and one without": (two_brokers, ["two_brokers", "two_brokers-2"]),
}


@pytest.mark.parametrize(("block", "names"), LEFT.values(), ids=LEFT)
def test_exception_that_leaves_the_block_has_a_note(block: Callable[[], None], names: list[str]) -> None:
    with pytest.raises(ValueError, match="on purpose") as caught:
        block()
    files = [Path("traces") / f"test_of_broker.{name}.html" for name in names]
    assert caught.value.__notes__ == [f"sluice trace: {file}" for file in files]
    trace = read_trace(files[0])
    assert (trace.title, trace.result) == (f"test_of_broker.{names[0]}", "failed")
    assert trace.failure is not None
    assert (trace.failure.text, trace.failure.file) == ("ValueError: on purpose", __file__)
    assert trace.failure.at == trace.end


def without_an_exception() -> None:
    with SyncBroker() as broker:
        send(broker)


def interrupted() -> None:
    with SyncBroker() as broker:
        send(broker)
        raise KeyboardInterrupt


def without_events() -> None:
    with SyncBroker():
        raise ValueError("on purpose")


def without_a_journal() -> None:
    with SyncBroker(config={"sluice.journal.events": 0}) as broker:
        send(broker)
        raise ValueError("on purpose")


@pytest.mark.parametrize("block", [without_an_exception, interrupted, without_events, without_a_journal])
def test_no_trace_is_written(block: Callable[[], None]) -> None:
    with suppress(ValueError, KeyboardInterrupt):
        block()
    assert not Path("traces").exists()


def test_no_trace_is_written_without_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SLUICE_TRACE")
    with pytest.raises(ValueError, match="on purpose") as caught:
        sync_broker()
    assert not hasattr(caught.value, "__notes__")
    assert [*tmp_path.iterdir()] == []


def test_problem_of_the_folder_is_in_the_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SLUICE_TRACE", "file")
    with pytest.raises(ValueError, match="on purpose") as caught:
        sync_broker()
    assert caught.value.__notes__ == [
        "sluice trace: file/test_of_broker.sync_broker.html: cannot write the trace: File exists"
    ]
