"""`sluice audit`: selection, output, report files and exit codes."""

import asyncio
import gzip
import io
import json
import os
import shlex
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from sluice.audit.judge.model.observation import Role, SubjectInfo
from sluice.audit.judge.model.statements import RECOVERY, STATEMENTS
from sluice.audit.judge.model.verdict import AuditResult, Sort, State, Verdict
from sluice.audit.probes import PROBES
from sluice.audit.probes.probe import Probe
from sluice.audit.report.files import read_report, write_report
from sluice.audit.runs import Budget, Progress
from sluice.audit.runs.observation_files import observation_file, write_observations
from sluice.audit.subjects import SUBJECTS
from sluice.audit.subjects.subject import Subject
from sluice.cli.audit.measure import open_screen
from sluice.cli.main import cli
from tests.support.audit_events import observed
from tests.support.audit_results import HOSTILE, TEXTS, result, subject, verdict, with_everything
from tests.support.command_lines import usage_error
from tests.support.journals import failed_batch

ROOT = Path(__file__).parents[5]


def invoke(*words: str) -> Result:
    return CliRunner().invoke(cli, ["audit", *words])


class Audits:
    """A stand-in for measurements that records the requests."""

    def __init__(self) -> None:
        self.result = with_everything()
        self.subjects: list[str] = []
        self.probes: list[str] = []
        self.settings: list[dict[str, float | str | bool]] = []
        self.budget = Budget()
        self.seed = -1
        self.signals = 0

    async def audit(
        self,
        subjects: Sequence[Subject],
        probes: Sequence[Probe],
        *,
        budget: Budget,
        on_progress: Any,
        seed: int,
        stop: asyncio.Event,
        report: Path,
        upstream: object = None,
    ) -> AuditResult:
        assert upstream is None
        self.subjects, self.probes = [each.name for each in subjects], [each.name for each in probes]
        self.settings = [each.info(Role.PRODUCER, {}).settings for each in subjects]
        self.budget, self.seed = budget, seed
        for _ in range(self.signals):
            os.kill(os.getpid(), signal.SIGINT)
            await stop.wait()
        if self.signals > 1:
            await asyncio.Event().wait()
        on_progress(Progress(self.subjects[0], "measuring", 3, 9, ("reconnect-closed",), 2.0))
        return self.result


@pytest.fixture
def audits(monkeypatch: pytest.MonkeyPatch) -> Audits:
    found = Audits()
    monkeypatch.setattr("sluice.cli.audit.measure.audit", found.audit)
    return found


def run(tmp_path: Path, *words: str) -> Result:
    return invoke("run", "--out", str(tmp_path / "out"), *words)


def test_summary_is_printed_and_report_is_written(audits: Audits, tmp_path: Path) -> None:
    ended = run(tmp_path, "--subject", "sluice", "--budget", "6m", "--seed", "7")
    assert ended.exit_code == 0, ended.output
    lines = ended.stdout.splitlines()
    assert lines[0] == "ours 0.1.0  3 runs in 12.5 s, in virtual time"
    assert lines[1] == "  ✓ 4 pass"
    assert "  ≠ KIP-580/1 differs: waits stay at 104 ms where they should double up to 1 s [3 runs]" in lines
    assert "  ✕ KIP-580/2 violates: no cap although it says 1 s [3 runs]" in lines
    assert "  ! Storm: 412 connections in 2.1 s [reconnect-refused]" in lines
    assert "\x1b" not in ended.stdout
    assert HOSTILE not in ended.stdout
    assert ended.stderr == "sluice: reconnect-closed, 3 of 9 runs, 2 s\n"
    assert read_report(tmp_path / "out") == audits.result
    assert (audits.subjects, audits.budget.seconds, audits.seed) == (["sluice"], 360.0, 7)
    assert audits.probes == list(PROBES)


def test_json_output_has_the_same_verdicts(audits: Audits, tmp_path: Path) -> None:
    output = json.loads(run(tmp_path, "--subject", "sluice", "--format", "json").stdout)
    assert [each["name"] for each in output["subjects"]] == [each.subject.name for each in audits.result.subjects]
    assert output["subjects"][0]["verdicts"] == {"pass": 4}
    assert {each["statement"]: each["kind"] for each in output["subjects"][1]["deviations"]} == {
        "KIP-580/1": "differs",
        "KIP-580/2": "violates",
    }
    assert [Path(file).name for file in output["files"]] == ["report.json", "junit.xml", "report.html"]


SELECTED = {
    "a client in virtual time": (["--subject", "sluice", "--virtual"], ["sluice-virtual"]),
    "both": (["--subject", "sluice-virtual", "--subject", "sluice"], ["sluice-virtual", "sluice"]),
    "all in virtual time": (["--virtual"], [name for name, each in SUBJECTS.items() if each.virtual]),
    "one named twice": (["--subject", "sluice", "--subject", "sluice"], ["sluice"]),
}


@pytest.mark.parametrize(("words", "names"), SELECTED.values(), ids=SELECTED)
def test_clients_are_selected_by_name(words: list[str], names: list[str], audits: Audits, tmp_path: Path) -> None:
    assert run(tmp_path, *words).exit_code == 0
    assert audits.subjects == names


@pytest.mark.parametrize("word", ["KIP-144", "kip-144", "KIP-144/6", "reconnect-two-brokers"])
def test_probes_are_selected_by_name_kip_or_statement(word: str, audits: Audits, tmp_path: Path) -> None:
    assert run(tmp_path, "--subject", "sluice", "--probe", word).exit_code == 0
    assert "reconnect-two-brokers" in audits.probes
    assert "produce-mute" not in audits.probes
    assert [name for name in PROBES if name in audits.probes] == audits.probes


def test_settings_of_a_command_are_passed_on(audits: Audits, tmp_path: Path) -> None:
    words = ("--subject", "python3 tools/my-app.py {bootstrap}", "--setting", "retry.backoff.ms=100")
    assert run(tmp_path, *words, "--setting", "retries=3").exit_code == 0
    assert (audits.subjects, audits.settings) == (["my-app.py"], [{"retry.backoff.ms": 100, "retries": 3}])


def test_statements_without_required_settings_are_counted(audits: Audits, tmp_path: Path) -> None:
    watched = SubjectInfo(name="my-app", role=Role.PRODUCER)
    audits.result = result(
        subject(
            "", "", verdict(), verdict("KIP-91/1", State.INCONCLUSIVE, missing=["delivery.timeout.ms"]), subject=watched
        )
    )
    lines = run(tmp_path, "--subject", "my-app {bootstrap}").stdout.splitlines()
    assert "  1 inconclusive: 1 needs settings of the client" in lines
    assert f"sluice audit judge {tmp_path / 'out'} --setting delivery.timeout.ms=120000" in lines


def test_needed_settings_are_one_line_to_paste(audits: Audits, tmp_path: Path) -> None:
    """All of them, however many, with Kafka's defaults: the line can be run as it is."""
    out = tmp_path / "the report"
    _measured(out)
    needed = sorted({name for statement in STATEMENTS.values() for name in statement.settings})
    unset = verdict("KIP-91/1", State.INCONCLUSIVE, missing=needed)
    audits.result = result(subject("app", "", unset))
    ended = invoke("run", "--out", str(out), "--subject", "my-app {bootstrap}")
    (line,) = (line for line in ended.stdout.splitlines() if line.startswith("sluice audit judge "))
    assert [word.partition("=")[0] for word in line.split(" --setting ")[1:]] == needed
    write_report(_report_of_a_command(), out, TEXTS)
    again = invoke(*shlex.split(line)[2:], "--out", str(tmp_path / "again"))
    assert again.exit_code == 0, again.output


def test_report_that_is_judged_into_another_folder_names_the_one_with_observations(tmp_path: Path) -> None:
    report = _measured(tmp_path / "report")
    lines = invoke("judge", report, "--out", str(tmp_path / "out")).stdout.splitlines()
    assert any(line.startswith(f"sluice audit judge {report} --setting ") for line in lines)


def test_command_is_judged_by_kafkas_defaults(audits: Audits, tmp_path: Path) -> None:
    words = ("--subject", "my-app {bootstrap}", "--like", "kafka", "--setting", "retries=3")
    assert run(tmp_path, *words).exit_code == 0
    (settings,) = audits.settings
    assert settings["retry.backoff.ms"] == 100
    assert settings["retries"] == 3, "--setting precedes --like"
    assert settings.keys() == {name for statement in STATEMENTS.values() for name in statement.settings} | {RECOVERY}


def test_report_is_judged_again_by_kafkas_defaults(tmp_path: Path) -> None:
    report = _measured(tmp_path)
    assert invoke("judge", report, "--like", "kafka").exit_code == 0
    states = {verdict.statement: verdict.state for verdict in read_report(tmp_path).subjects[0].verdicts}
    assert states["KIP-580/1"] is State.PASS


INTERRUPTED = {
    "finished runs are reported": (
        1,
        [verdict()],
        "stopping; judging the results so far, press Ctrl-C again to skip that",
        True,
    ),
    "no report without finished runs": (1, [], "Error: stopped by a signal before anything was measured", False),
    "pressed twice, it ends at once": (2, [verdict()], "Error: stopped by a signal", False),
}


@pytest.mark.parametrize(("signals", "verdicts", "output", "written"), INTERRUPTED.values(), ids=INTERRUPTED)
def test_ctrl_c(
    signals: int, verdicts: list[Verdict], output: str, written: bool, audits: Audits, tmp_path: Path
) -> None:
    audits.signals, audits.result = signals, result(subject("a", "1", *verdicts))
    ended = run(tmp_path, "--subject", "sluice")
    assert ended.exit_code == 1
    assert output in ended.stderr.splitlines()
    assert (tmp_path / "out" / "report.json").exists() == written


DIFFERS = verdict(state=State.DEVIATES, sort=Sort.DIFFERS_FROM_KIP)
PREDATES = verdict(state=State.DEVIATES, sort=Sort.PREDATES_KIP)
UNCLEAR = verdict(state=State.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("fail_on", "exit_codes"),
    [("violates", [0, 0, 0, 0]), ("differs", [0, 1, 0, 0]), ("deviates", [0, 1, 1, 0]), ("inconclusive", [0, 0, 0, 1]),
     ("findings", [0, 0, 0, 0])],
)  # fmt: skip
def test_exit_code_follows_fail_on(fail_on: str, exit_codes: list[int], audits: Audits, tmp_path: Path) -> None:
    found = []
    for one in (verdict(), DIFFERS, PREDATES, UNCLEAR):
        audits.result = result(subject("a", "1", one))
        ended = run(tmp_path, "--subject", "sluice", "--fail-on", fail_on)
        assert ("failed because of --fail-on: 1 verdict" in ended.stderr) == bool(ended.exit_code)
        found.append(ended.exit_code)
    assert found == exit_codes


def test_fail_on_findings_fails_for_findings(audits: Audits, tmp_path: Path) -> None:
    assert run(tmp_path, "--subject", "sluice", "--fail-on", "findings").exit_code == 1


def test_client_that_could_not_run_fails_the_command(audits: Audits, tmp_path: Path) -> None:
    audits.result = result(subject("a", "1", UNCLEAR, problems=["it did not start"]))
    ended = run(tmp_path, "--subject", "sluice")
    assert ended.exit_code == 1
    assert "failed run: it did not start" in ended.stdout
    assert ended.stderr.splitlines()[-1] == "a: no verdict; its runs failed"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--probe", "reconect-closed"], "--probe reconect-closed: unknown probe, KIP or statement. "
         "Did you mean reconnect-closed?"),
        (["--probe", "KIP-5800"], "Did you mean KIP-580?"),
        (["--budget", "soon"], "--budget: expected a time such as 500ms, 10s, 2m or 1h, got soon"),
        (["--budget", "0s"], "--budget: expected a time such as 500ms, 10s, 2m or 1h, got 0s"),
        (["--fail-on", "all"], "--fail-on: expected one of violates, differs, deviates, inconclusive, "
         "findings, got all\n"),
        (["--subject", "java", "--virtual"], "--subject java: not supported in virtual time; "
         "expected one of aiokafka, sluice"),
        (["--probe", "KIP-572"], "--probe KIP-572: a broker cannot observe it: it happens inside"),
        (["--subject", "a {bootstrap}", "--setting", "retry.backof.ms=1"], "--setting retry.backof.ms: unknown "
         "setting; expected one of delivery.timeout.ms, "),
        (["--subject", "a {bootstrap}", "--setting", "retries=no"], "--setting retries: expected a number, such as "
         "retries=100"),
        (["--subject", "a {bootstrap}", "--like", "me"], "--like: expected one of kafka, got me"),
        (["--subject", "java", "--like", "kafka"], "--like kafka: applies only to commands; no --subject is a command"),
        (["--subject", "java", "--setting", "retries=1"], "--setting retries=1: applies only to commands; no "
         "--subject is a command"),
    ],
    ids=["a probe", "a KIP", "a time", "no time", "a reason to fail", "a client without virtual time",
         "an unobservable KIP", "a setting", "a setting that is not a number", "another client's defaults",
         "defaults without a command", "a setting without a command"],
)  # fmt: skip
def test_unknown_value_is_reported_in_one_line(words: list[str], line: str, tmp_path: Path) -> None:
    assert line in usage_error("audit", "run", "--out", str(tmp_path / "out"), *words)


def test_unwritable_folder_is_reported_before_measuring(audits: Audits, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    ended = invoke("run", "--out", str(tmp_path / "taken" / "out"), "--subject", "sluice")
    assert ended.exit_code == 1
    assert ended.stderr == f"Error: {tmp_path}/taken/out: cannot write the report: Not a directory\n"
    assert audits.subjects == []


def _reports(tmp_path: Path) -> tuple[str, str]:
    before = result(subject("a", "1", verdict(), verdict("KIP-91/1", State.DEVIATES)), subject("old", "1"))
    now = result(subject("a", "2", DIFFERS, verdict("KIP-91/1")), subject("new", "1"))
    for name, each in (("before", before), ("now", now)):
        write_report(each, tmp_path / name, TEXTS)
    return str(tmp_path / "before"), str(tmp_path / "now" / "report.json")


def test_two_reports_are_compared(tmp_path: Path) -> None:
    ended = invoke("compare", *_reports(tmp_path))
    assert ended.exit_code == 0
    assert ended.stdout.splitlines() == [
        "a 1 then, 2 now",
        "  ✕ worse KIP-580/1  passes → differs from the KIP: as the KIP says",
        "  ✓ better KIP-91/1  differs from the KIP → passes: as the KIP says",
        "new: new",
        "old: gone",
        "1 worse, 1 better, 1 new, 1 gone, 0 as before",
    ]


def _measured(folder: Path) -> str:
    """Write the report of a command with unknown settings, whose batches fail."""
    run = observed("produce-timed-out", failed_batch([100, 200, 400, 800, 1000]).events, settings={}, is_command=True)
    write_observations(observation_file(folder, 0), [run])
    write_report(_report_of_a_command(), folder, TEXTS)
    return str(folder)


def _report_of_a_command() -> AuditResult:
    return result(subject("", "", verdict("KIP-580/1"), subject=observed("", [], settings={}, is_command=True).subject))


def test_report_is_judged_again_with_more_settings(tmp_path: Path) -> None:
    report, out = _measured(tmp_path / "report"), tmp_path / "out"
    states = [
        {verdict.statement: verdict.state for verdict in read_report(folder).subjects[0].verdicts}
        for folder, settings in (
            (tmp_path / "report", {}),
            (out, {"retry.backoff.ms": 100, "retry.backoff.max.ms": 1000}),
        )
        for words in [[word for name, value in settings.items() for word in ("--setting", f"{name}={value}")]]
        if invoke("judge", report, "--out", str(folder), *words).exit_code == 0
    ]
    assert [each["KIP-580/1"] for each in states] == [State.INCONCLUSIVE, State.PASS]
    (backoff,) = read_report(tmp_path / "report").subjects[0].backoffs
    assert (backoff.kind, backoff.fit.model) == ("produce", "exponential")


def test_the_journal_of_a_run_is_written(tmp_path: Path) -> None:
    report, file = _measured(tmp_path / "report"), tmp_path / "run.ndjson"
    ended = invoke("journal", report, str(file))
    assert (ended.exit_code, ended.stdout) == (0, f"{file}: 6 events\n")
    assert file.read_bytes() == failed_batch([100, 200, 400, 800, 1000]).ndjson


UNKNOWN_RUNS = {
    "client": (["--subject", "no"], "--subject: expected one of app, got no"),
    "probe": (["--probe", "no"], "--probe: expected one of produce-timed-out, got no"),
    "repetition": (["--repetition", "3"], "--repetition: expected one of 0, got 3"),
}


@pytest.mark.parametrize(("words", "problem"), UNKNOWN_RUNS.values(), ids=UNKNOWN_RUNS)
def test_the_journal_of_an_unknown_run(tmp_path: Path, words: list[str], problem: str) -> None:
    ended = invoke("journal", _measured(tmp_path), str(tmp_path / "run.ndjson"), *words)
    assert ended.exit_code == 2
    assert problem in ended.stderr


def test_the_journal_of_several_probes_needs_one(tmp_path: Path) -> None:
    report = _measured(tmp_path)
    runs = [observed(probe, [], settings={}) for probe in ("a", "b")]
    write_observations(observation_file(tmp_path, 0), runs)
    ended = invoke("journal", report, str(tmp_path / "run.ndjson"))
    assert ended.exit_code == 2
    assert "--probe: expected one of a, b, got none" in ended.stderr


def test_the_journal_is_not_written(tmp_path: Path) -> None:
    ended = invoke("journal", _measured(tmp_path / "report"), str(tmp_path / "none" / "run.ndjson"))
    assert ended.exit_code == 1
    assert "cannot write: No such file or directory" in ended.stderr


NOT_OBSERVED = {
    "missing": (None, "cannot read the observations"),
    "of another version": (b"", "expected the observations of an audit of this version"),
}


@pytest.mark.parametrize(("broken", "problem"), NOT_OBSERVED.values(), ids=NOT_OBSERVED)
def test_report_without_observations_is_not_judged_again(broken: bytes | None, problem: str, tmp_path: Path) -> None:
    report, file = _measured(tmp_path), observation_file(tmp_path, 0)
    file.unlink()
    if broken is not None:
        file.write_bytes(gzip.compress(broken))
    ended = invoke("judge", report)
    assert ended.exit_code == 1
    assert f"{file}: {problem}" in ended.stderr


def test_comparison_has_json_output_and_can_fail(tmp_path: Path) -> None:
    before, now = _reports(tmp_path)
    ended = invoke("compare", before, now, "--format", "json", "--fail-on-worse")
    assert ended.exit_code == 1
    assert [change["kind"] for change in json.loads(ended.stdout)["changes"]] == ["worse", "better", "new", "gone"]
    assert invoke("compare", before, before, "--fail-on-worse").exit_code == 0


def test_invalid_report_is_reported(tmp_path: Path) -> None:
    before, _ = _reports(tmp_path)
    (tmp_path / "other.json").write_text("{}")
    ended = invoke("compare", before, str(tmp_path / "other.json"))
    assert ended.exit_code == 1
    assert ended.stderr.startswith(f"Error: {tmp_path}/other.json: expected the report.json of an audit: ")
    ended = invoke("compare", before, str(tmp_path / "none"))
    assert (ended.exit_code, ended.stderr.count("\n")) == (1, 1)


def test_schema_equals_the_published_one() -> None:
    assert invoke("schema").stdout == (ROOT / "docs" / "audit.schema.json").read_text()


def test_without_a_terminal_progress_lines_are_occasional() -> None:
    out = io.StringIO()
    with open_screen(Console(file=out, width=80)) as screen:
        for seconds, phase in ((1.0, "measuring"), (5.0, "measuring"), (17.0, "measuring"), (18.0, "judging")):
            screen.show(Progress("a\x1b", phase, 1, 4, ("p", "q", "p", "r", "s"), seconds))  # type: ignore[arg-type]  # a phase
    assert out.getvalue().splitlines() == [
        "a\\x1b: p, q, r and 1 more, 1 of 4 runs, 1 s",
        "a\\x1b: p, q, r and 1 more, 1 of 4 runs, 17 s",
        "a\\x1b: judging, 1 of 4 runs, 18 s",
    ]


def test_terminal_shows_progress_bars() -> None:
    out = io.StringIO()
    with open_screen(Console(file=out, force_terminal=True, width=100)) as screen:
        screen.show(Progress("[a]", "measuring", 1, 4, ("p",), 1.0))
        screen.show(Progress("[a]", "done", 4, 4, (), 2.0))
    assert "[a]" in out.getvalue()
    assert "4/4" in out.getvalue()
