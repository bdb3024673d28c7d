"""The `sluice demo` command: rejected options, output, and cleanup when it is stopped."""

import asyncio
import importlib.util
import json
import logging
import re

import pytest
from click.testing import CliRunner
from rich.console import Console

from sluice.cli.demo import command as demo_module
from sluice.cli.demo.metrics import Scrape
from sluice.cli.demo.screen import open_screen
from sluice.cli.demo.trace import PRODUCE, Client, Trace
from sluice.cli.demo.verdict import Result
from sluice.cli.main import cli
from sluice.clock import LoopClock
from sluice.errors import SluiceError
from tests.support.command_lines import usage_error


def _play(monkeypatch: pytest.MonkeyPatch, *problems: str) -> None:
    """End the demo at once, with these problems of its last client."""

    async def run(clients: list[Client], seconds: int, console: Console) -> tuple[list[Result], float]:
        logging.getLogger("aiokafka").error("a warning of a library")
        console.print("meanwhile")
        results = [Result(client, client.quota, None, None, 0.0, []) for client in clients]
        results[-1] = Result(clients[-1], 0.0, None, None, 1.0, list(problems))
        return results, 0.0

    monkeypatch.setattr(demo_module, "_run", run)


class TestRefuses:
    @pytest.mark.parametrize("seconds", ["24", "0", "-1"])
    def test_time_too_short_for_a_verdict_is_rejected(self, seconds: str) -> None:
        assert f"--seconds: expected at least 25 s, got {seconds}" in usage_error("demo", "--seconds", seconds)

    @pytest.mark.parametrize("missing", ["aiokafka", "kafka"])
    def test_missing_client_libraries_are_reported(self, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
        find = importlib.util.find_spec
        monkeypatch.setattr(demo_module, "find_spec", lambda name: None if name == missing else find(name))
        result = CliRunner().invoke(cli, ["demo"])
        assert (result.exit_code, result.stdout) == (1, "")
        assert "pip install 'kafka-sluice[demo]'" in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1


class TestTheCommand:
    def test_successful_demo_exits_with_0(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _play(monkeypatch)
        result = CliRunner().invoke(cli, ["demo"])
        assert result.exit_code == 0
        assert "was never throttled" in result.stdout
        assert result.stderr == "", "log messages of libraries stay off the screen"

    def test_failed_client_exits_with_1(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _play(monkeypatch, "steady was throttled")
        result = CliRunner().invoke(cli, ["demo"])
        assert result.exit_code == 1
        assert "steady was throttled" in result.stdout

    @pytest.mark.parametrize(("problems", "passed"), [([], True), (["steady was throttled"], False)])
    def test_json_is_the_only_output_on_stdout(
        self, monkeypatch: pytest.MonkeyPatch, problems: list[str], passed: bool
    ) -> None:
        _play(monkeypatch, *problems)
        result = CliRunner().invoke(cli, ["demo", "--format", "json"])
        summary = json.loads(result.stdout)
        assert summary["passed"] is passed
        assert [client["client_id"] for client in summary["clients"]] == ["bronze", "gold", "reader", "steady"]
        assert result.stderr == "meanwhile\n"

    def test_logging_is_restored(self, monkeypatch: pytest.MonkeyPatch) -> None:
        _play(monkeypatch)
        before = logging.root.manager.disable
        CliRunner().invoke(cli, ["demo"])
        assert logging.root.manager.disable == before


def test_clients_have_the_quotas_of_the_broker() -> None:
    quotas = {client.name: (client.kind, client.quota, client.exceeds_quota) for client in demo_module._clients()}
    assert quotas == {
        "bronze": ("Produce", 1e6, True),
        "gold": ("Produce", 4e6, True),
        "reader": ("Fetch", 2e6, True),
        "steady": ("Produce", 1e6, False),
    }


ENDS = {
    "not before its time": (34.9, 9, False),
    "at its time if the last cycle is complete": (35.0, 4, True),
    "later if the last cycle is incomplete": (37.9, 3, False),
    "at most 3 s later": (38.0, 3, True),
}


@pytest.mark.parametrize(("at_s", "bursts", "over"), ENDS.values(), ids=ENDS)
def test_end_of_the_demo(monkeypatch: pytest.MonkeyPatch, at_s: float, bursts: int, over: bool) -> None:
    monkeypatch.setattr(Trace, "burst_starts", lambda self, quota: [0.0] * bursts)
    clients = [Client("c", "", PRODUCE, 1e6, Trace()), Client("d", "", PRODUCE, 1e6, Trace(), exceeds_quota=False)]
    assert demo_module._is_over(clients, 5_000.0, 35, 5_000.0 + at_s * 1e3) is over


class TestAClientThatEnds:
    def _watch(self, error: Exception | None) -> None:
        async def client() -> None:
            if error is not None:
                raise error

        async def main() -> None:
            clock = LoopClock(asyncio.get_running_loop())
            tasks = {asyncio.create_task(client()): Client("bronze", "", PRODUCE, 1e6, Trace())}
            with open_screen(Console(quiet=True), [], "", 0.0, 35) as screen:
                await demo_module._watch(tasks, "", clock, screen, lambda _: False)

        asyncio.run(main())

    @pytest.mark.parametrize("error", [OSError("no route"), None], ids=["by an error", "by itself"])
    def test_failed_client_ends_the_demo(self, monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> None:
        monkeypatch.setattr(demo_module, "read_metrics", lambda admin: Scrape(""))
        with pytest.raises(SluiceError, match=f"^bronze ended: {re.escape(repr(error))}$"):
            self._watch(error)
