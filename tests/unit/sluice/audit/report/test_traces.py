"""Traces of deviations and findings."""

from pathlib import Path

import pytest

from sluice.audit.judge.model.verdict import Finding, FindingKind, State, SubjectResult
from sluice.audit.report.traces import has_cases, write_traces
from sluice.errors import SluiceError
from tests.support.audit_events import callback, observed
from tests.support.audit_results import series, subject, verdict
from tests.support.journals import failed_batch
from tests.support.traces import read_trace

CALLBACKS = [callback("sent", 1, 0), callback("failed", 900, 0)]
RUNS = [
    observed(
        "produce-timed-out",
        failed_batch([100, 200]).events,
        repetition=repetition,
        fault_ms=(0, 500),
        callbacks=CALLBACKS if repetition == 1 else (),
    )
    for repetition in range(3)
] + [observed("storm", failed_batch([1]).events), observed("empty", [])]


def deviation(**fields: object) -> SubjectResult:
    return subject("app", "1", verdict("KIP-580/1", State.DEVIATES, why="too short", **fields))


def finding(probe: str, **fields: object) -> SubjectResult:
    found = Finding(kind=FindingKind.STORM, probe=probe, why="1,000 requests", **fields)  # type: ignore[arg-type]
    return subject("app", "1", findings=[found])


# A client -> the name of its trace, and the run in it.
CASES = {
    "run that a verdict names": (
        deviation(probe="produce-timed-out", where="run 2, attempts 1 and 2 of orders-0"),
        "0-app-KIP-580-1.html",
        "produce-timed-out, run 2, as a producer",
    ),
    "run of the first sequence": (
        deviation(probe="produce-timed-out", series=[series([1], repetition=2)]),
        "0-app-KIP-580-1.html",
        "produce-timed-out, run 3, as a producer",
    ),
    "first run without either": (
        deviation(probe="produce-timed-out"),
        "0-app-KIP-580-1.html",
        "produce-timed-out, run 1, as a producer",
    ),
    "finding": (finding("storm"), "0-app-storm-storm.html", "storm, run 1, as a producer"),
}


@pytest.mark.parametrize(("client", "name", "subtitle"), CASES.values(), ids=CASES)
def test_case_has_a_trace(client: SubjectResult, name: str, subtitle: str, tmp_path: Path) -> None:
    assert has_cases(client)
    (file,) = write_traces(0, client, RUNS, tmp_path)
    assert file == tmp_path / "traces" / name
    assert read_trace(file).subtitle == subtitle


def test_trace_has_the_fault_the_reports_of_the_driver_and_the_reason(tmp_path: Path) -> None:
    client = deviation(probe="produce-timed-out", where="run 2, attempts 1 and 2 of orders-0")
    trace = read_trace(write_traces(0, client, RUNS, tmp_path)[0])
    assert (trace.title, trace.result) == ("app: KIP-580/1", "failed")
    assert [phase.name for phase in trace.phases] == ["fault"]
    assert [line[1:] for line in trace.logs] == [
        ("INFO", "driver", "sent record 0"),
        ("WARNING", "driver", "failed record 0"),
    ]
    assert trace.failure is not None
    assert trace.failure.text == "too short"


@pytest.mark.parametrize(
    "client",
    [subject("app", "1", verdict()), subject("app", "1", verdict(state=State.INCONCLUSIVE))],
    ids=["passed", "undecided"],
)
def test_other_verdicts_are_no_cases(client: SubjectResult, tmp_path: Path) -> None:
    assert not has_cases(client)
    assert write_traces(0, client, RUNS, tmp_path) == []
    assert not (tmp_path / "traces").exists()


def test_name_of_a_client_is_no_path(tmp_path: Path) -> None:
    client = subject("../../app --a b", "1", verdict("KIP-580/1", State.DEVIATES, probe="storm"))
    (file,) = write_traces(0, client, RUNS, tmp_path)
    assert file.parent == tmp_path / "traces"
    assert file.name.startswith("0-..-..-app---a-b-KIP-580-1-")


@pytest.mark.parametrize("probe", ["empty", "absent"])
def test_run_without_events_has_no_trace(probe: str, tmp_path: Path) -> None:
    assert write_traces(0, finding(probe), RUNS, tmp_path) == []


def test_folder_that_cannot_be_made_is_an_error_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "traces").write_text("")
    with pytest.raises(SluiceError, match=r"KIP-580-1.html: cannot write the trace: File exists"):
        write_traces(0, deviation(probe="produce-timed-out"), RUNS, tmp_path)
