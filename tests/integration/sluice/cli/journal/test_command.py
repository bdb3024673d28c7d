"""`sluice journal` with a running broker, and its error messages."""

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner, Result

from sluice.cli.journal import export
from sluice.cli.main import cli
from sluice.journal_events import Gap
from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.records import produce
from tests.support.wire import WireClient


def run(*args: str) -> Result:
    return CliRunner().invoke(cli, ["journal", *args])


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerProcess]:
    """Start a broker; a client requests metadata twice and then produces to an unknown topic."""
    log: Path = tmp_path_factory.mktemp("journal") / "log"
    with running_broker(log, *overrides("auto.create.topics.enable=false", "sluice.journal.events=16384")) as running:
        with WireClient(running.bootstrap, "shop") as client:
            client.call(MetadataRequest(), 9)
            client.call(MetadataRequest(), 9)
            client.call(produce(9), 9)
        yield running


def test_newest_events_are_printed(broker: BrokerProcess) -> None:
    shown = run("tail", "--admin", broker.admin, "--client-id", "shop", "--kind", "request", "--last", "2")
    first, second = shown.stdout.splitlines()
    assert " broker 1 #" in first
    assert " shop Metadata v9 (1), " in first
    assert second.endswith(" ms, UNKNOWN_TOPIC_OR_PARTITION")
    assert " shop Produce v9 (1), t-0, " in second


def test_events_are_printed_as_json(broker: BrokerProcess) -> None:
    shown = run("tail", "--admin", broker.admin, "--api", "Metadata", "--after", "0", "--format", "json")
    assert [json.loads(line)["api"] for line in shown.stdout.splitlines()] == ["Metadata", "Metadata"]


def test_all_events_are_exported_page_by_page(
    broker: BrokerProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.cli.journal.export._PAGE", 2)
    file = tmp_path / "all.ndjson"
    message = run("export", str(file), "--admin", broker.admin).stdout
    seqs = [json.loads(line)["seq"] for line in file.read_text().splitlines()]
    assert seqs == [*range(1, len(seqs) + 1)]
    assert len(seqs) >= 5
    assert message == f"{file}: {len(seqs)} events\n"


def test_lost_events_are_reported_and_recorded(tmp_path: Path) -> None:
    gap = msgspec.json.encode(Gap(seq=7, at_ns=0, broker=-1, lost=7)).decode()
    file = str(tmp_path / "some.ndjson")
    assert export.writer_of(file)(file, [gap]) == (1, 7)


def test_parquet_requires_pyarrow(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(export, "find_spec", lambda name: None)
    shown = run("export", str(tmp_path / "all.parquet"))
    assert shown.exit_code == 1
    assert "Parquet needs pyarrow, which is not installed; install it, or use .ndjson" in shown.stderr
