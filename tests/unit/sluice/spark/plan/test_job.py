"""A complete plan in one process: from files to tables, report, plots and script."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from sluice.cli.main import cli
from sluice.errors import ConfigError, SluiceError
from sluice.spark.plan import local_engine
from sluice.spark.plan.analysis import Limits, Settings
from sluice.spark.plan.job import plan
from sluice.spark.plan.kafka_configs_script import SCRIPT
from sluice.spark.plan.recommendation import Policy
from sluice.spark.plan.report import PAGE, rate
from sluice.spark.plan.tables import FINDING, NEEDS, QUARANTINE, RECOMMENDATION, REPLAYS, finding_of, read_table
from tests.support.journal_lines import journal

HOSTILE = "a|`b`\n# c <b>"
CLIENTS = {"steady": (100, 5_000), "bursty": (100, 90_000), HOSTILE: (500, 2_000)}  # ms between requests, bytes
SETTINGS = Settings((20_000.0, 200_000.0, 2e6), ("by-version",), ("closed",), "client-id", Limits(100, 0.05))


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("log") / "journal.ndjson"
    file.write_bytes(journal(CLIENTS, seconds=120) + b"what is this\n")
    return file


@pytest.fixture(scope="module")
def out(log: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the output folder of a plan."""
    folder = tmp_path_factory.mktemp("plans") / "out"
    run(log, folder)
    return folder


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave plots empty, because other tests draw plots of the same log, and drawing takes most of the time."""
    monkeypatch.setattr("sluice.spark.plan.plots._svg", lambda figure: "<svg></svg>")


def run(
    log: Path, out: Path, settings: Settings = SETTINGS, overrides: int = 1, always_default: bool = True
) -> list[tuple[str, int, int]]:
    steps: list[tuple[str, int, int]] = []
    policy = Policy(overrides, always_default=always_default)
    plan([str(log)], out, settings, policy, local_engine.run, lambda *done: steps.append(done))
    return steps


def test_tables_have_a_row_for_each_client_and_candidate(log: Path, out: Path) -> None:
    replays = [finding_of(row) for row in read_table(out, REPLAYS, FINDING)]
    assert {(each.client.client_id, each.candidate.quota) for each in replays} == {
        (client_id, quota) for client_id in CLIENTS for quota in SETTINGS.quotas
    }
    needs = {each.client.client_id: each for each in map(finding_of, read_table(out, NEEDS, FINDING))}
    assert set(needs) == set(CLIENTS)
    assert needs["bursty"].candidate.quota > needs["steady"].candidate.quota
    (bad,) = parquet.read_table(out / QUARANTINE).to_pylist()
    assert (bad["source"], bad["text"]) == (str(log), "what is this")
    assert bad["reason"].startswith("neither a journal event nor")


def test_columns_are_named(out: Path) -> None:
    assert parquet.read_table(out / REPLAYS).column_names == list(FINDING)


def test_the_report_has_the_input_counts_and_the_recommendation(out: Path) -> None:
    page = (out / PAGE).read_text()
    assert _row("charges of clients", "2,640") in page
    assert _row("quarantined", "1") in page
    assert "<h2>Produce: recommendation</h2>" in page
    assert '<tr class="override"><th scope="row"><code>bursty</code></th>' in page
    assert f"<code>sh {SCRIPT} BOOTSTRAP-SERVER</code>" in page


def _row(name: str, count: str) -> str:
    return f'<tr><th scope="row">{name}</th><td data-label="count">{count}</td></tr>'


def test_the_recommendation_is_also_a_table(out: Path) -> None:
    default, override = parquet.read_table(out / RECOMMENDATION).to_pylist()
    assert (default["quota_for"], default["client_id"]) == ("default", "")
    assert (override["quota_for"], override["client_id"]) == ("override", "bursty")
    assert override["quota"] > default["quota"] > 0


def test_the_same_input_gives_the_same_files(log: Path, out: Path, tmp_path: Path) -> None:
    run(log, tmp_path / "again")
    for file in (PAGE, SCRIPT):
        assert (tmp_path / "again" / file).read_text() == (out / file).read_text()


def test_without_limits_no_script_is_written_and_progress_is_reported(log: Path, tmp_path: Path) -> None:
    steps = run(log, tmp_path / "out", SETTINGS._replace(limits=None))
    assert [step for step, *_ in steps] == ["reading", *["replaying"] * 3, "writing the report"]
    assert not (tmp_path / "out" / SCRIPT).exists()
    assert "recommendation" not in (tmp_path / "out" / PAGE).read_text()


def test_a_log_without_charges_has_a_report(tmp_path: Path) -> None:
    (tmp_path / "server.log").write_text("INFO started\n")
    run(tmp_path / "server.log", tmp_path / "out")
    assert _row("quarantined", "1") in (tmp_path / "out" / PAGE).read_text()
    assert not (tmp_path / "out" / SCRIPT).exists()


def test_a_folder_with_files_is_rejected(log: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not empty; expected a new or empty folder"):
        run(log, log.parent)
    with pytest.raises(ConfigError, match="not a folder"):
        run(log, log)
    with pytest.raises(SluiceError, match="no such file or folder"):
        run(tmp_path / "nothing", tmp_path / "out")


@pytest.mark.parametrize(
    ("per_s", "shown"), [(0, "0 B/s"), (999, "999 B/s"), (1234, "1.23 kB/s"), (5e6, "5 MB/s"), (2e9, "2 GB/s")]
)
def test_rates_have_a_unit(per_s: float, shown: str) -> None:
    assert rate(per_s) == shown


@pytest.mark.parametrize("tag", ["<script", "<link", "<img", "src=", "url(http"])
def test_the_page_is_self_contained(out: Path, tag: str) -> None:
    page = (out / PAGE).read_text()
    assert tag not in page
    assert page.count("<svg") == 2
    assert "<code>a|`b`\\x0a# c &lt;b&gt;</code>" in page


WARNINGS = {
    "a short log": (b"", "Short log: 9 s of traffic; 10 quota windows (110 s) are required."),
    "lost events": (b'{"kind":"gap","lost":7}\n', "Incomplete log: the journal lost 7 events."),
    "invalid lines": (b"no\n" * 9, "Incomplete log: 9 lines or rows were not understood, 9 were."),
    "no traffic": (b'{"kind":"gap","lost":0}\n', "No traffic: "),
}


@pytest.mark.parametrize(("lines", "warning"), WARNINGS.values(), ids=WARNINGS)
def test_reasons_for_no_recommendation_come_first(lines: bytes, warning: str, tmp_path: Path) -> None:
    file = tmp_path / "log"
    seconds = 10 if not lines else 1200
    traffic = b"" if warning.startswith("No traffic") else journal({"a": (seconds * 1000 // 10, 500)}, seconds)
    file.write_bytes(b"".join(traffic.splitlines(keepends=True)[: 10 - bool(lines)]) + lines)
    code, output = command(str(file), "--output", str(tmp_path / "out"), "--default")
    assert (code, output.startswith(warning)) == (0, True), output
    name, _, text = warning.partition(":")
    page = (tmp_path / "out" / PAGE).read_text()
    assert page.partition('<p class="warning">')[2].startswith(f"<strong>{name}:</strong>{text}")
    assert not (tmp_path / "out" / SCRIPT).exists()


# -- the command -------------------------------------------------------------------------------------------------------


def command(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["pipeline", "plan", *arguments])
    return result.exit_code, result.output


@pytest.mark.usefixtures("undrawn")
def test_the_command_prints_the_recommendation(log: Path, tmp_path: Path) -> None:
    code, output = command(str(log), "--output", str(tmp_path / "out"))
    assert code == 0
    assert "charges of clients: 2,640" in output
    assert "Produce: no default: it would be based on 3 clients with a known demand; at least 10" in output
    assert '\n  "bursty": ' in output
    assert " headroom" in output
    assert output.rstrip().endswith(str(tmp_path / "out" / PAGE))


@pytest.mark.usefixtures("undrawn")
def test_the_command_recommends_a_default_on_request(log: Path, tmp_path: Path) -> None:
    code, output = command(str(log), "--output", str(tmp_path / "out"), "--default", "--headroom", "0.5")
    assert code == 0
    assert "for all clients, sufficient for 2 of 3 with 5" in output
    assert '% headroom; based on 2 clients\n  "bursty": ' in output


@pytest.mark.usefixtures("undrawn")
def test_the_command_prints_json(log: Path, tmp_path: Path) -> None:
    code, output = command(str(log), "--output", str(tmp_path / "out"), "--format", "json", "--quota", "1M")
    assert code == 0
    printed = msgspec.json.decode(output[output.index("{") :])
    assert printed["read"] == {"charges of clients": 2640, "quarantined": 1}
    assert (printed["warnings"], printed["demand"]["known"]) == ([], 3)
    (produce,) = printed["recommendations"]
    assert (produce["kind"], produce["clients"], produce["default"]) == ("Produce", 3, None)
    assert {each["confidence"] for each in produce["overrides"]} == {"known"}
    assert all(each["quota"] >= 1.25 * each["required"] for each in produce["overrides"])


@pytest.mark.usefixtures("undrawn")
def test_many_lower_bounds_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_bytes(journal({f"client-{number}": (500, 100) for number in range(8)}, seconds=5))
    _, output = command(str(file), "--output", str(tmp_path / "out"))
    assert output.count("demand at least ") == 5
    assert "  and 3 more whose demand is a lower bound" in output
    report = (tmp_path / "out" / PAGE).read_text()
    assert "The demand of no client is known, so no quota is required or recommended." in report
    assert "With the required quotas" not in report


def test_input_that_is_all_quarantined_is_an_error_with_the_first_reasons(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text("one\n{\nthree\nfour\n")
    code, output = command(str(file), "--output", str(tmp_path / "out"))
    assert code == 1
    neither = "neither a journal event nor a completed request of Kafka's request log"
    *_, first, second, third, error = output.splitlines()
    assert (first, third) == (f"{file}:0: {neither}", f"{file}:6: {neither}")
    assert second.startswith(f"{file}:4: not JSON: ")
    assert error == "Error: no input was understood; expected journal exports or Kafka's request logs"


def test_a_missing_package_is_named_with_its_extra(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluice.cli.jobs.plan.find_spec", lambda module: None if module == "numpy" else module)
    code, output = command(str(log), "--output", str(tmp_path / "out"))
    assert (code, "numpy is not installed; run pip install 'kafka-sluice[plan]'" in output) == (1, True)


WRONG_USAGE = {
    "an invalid quota": (
        ["--quota", "fast"],
        "--quota: expected bytes per second, such as 500k, 2M or 1048576, got fast",
    ),
    "an unknown profile": (["--profile", "kafka-9"], ", got kafka-9. Did you mean kafka-3.9?"),
    "an unknown level": (["--by", "colour"], "--by: expected one of client-id, user, user+client-id, got colour"),
}


@pytest.mark.parametrize(("arguments", "line"), WRONG_USAGE.values(), ids=WRONG_USAGE)
def test_wrong_usage(arguments: list[str], line: str, log: Path, tmp_path: Path) -> None:
    code, output = command(str(log), "--output", str(tmp_path / "out"), *arguments)
    assert (code, line in output) == (2, True), output
    assert not (tmp_path / "out").exists()
