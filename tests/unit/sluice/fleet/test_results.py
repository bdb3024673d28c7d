"""Tests of the figures of a run, from counts made by hand, and of its files."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from sluice.errors import ConfigError, SluiceError
from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.report.page import describe, recovery, write_report
from sluice.fleet.results import ClientGroup, Result, figures_of, read, write
from sluice.fleet.run import ensure_possible, map_jobs
from sluice.fleet.simulation.broker import BROKERS
from sluice.fleet.simulation.counters import KINDS, Count
from sluice.fleet.simulation.quota import Fairness
from tests.support.fleet_simulation import schedule_with


def _counts(recovers_s: int) -> npt.NDArray[np.int64]:
    """A fleet of 10 operations/s fails from second 10 on, and completes them again from `recovers_s` on."""
    counts = np.zeros((400, len(KINDS)), dtype=np.int64)
    healthy = np.r_[0:100, recovers_s * 10 : 400]
    counts[healthy[:, None], [Count.COMPLETED, Count.PRODUCE_REQUESTS]] = 1
    counts[healthy, Count.LATENCY_US] = 5000
    counts[100 : recovers_s * 10, Count.CONNECTIONS] = 3
    counts[120, Count.EXPIRED] = 7
    return counts


def _result(*recovers_s: int) -> Result:
    return Result(
        scenario="test",
        groups=[ClientGroup("kafka-4.4", 10, ClientModel())],
        broker=BROKERS["kafka"],
        brokers=3,
        trigger_ms=10_000,
        healed_ms=15_000,
        seeds=list(range(len(recovers_s))),
        counts=[_counts(each).tolist() for each in recovers_s],
        events=1,
    )


def test_figures_are_those_of_the_failure() -> None:
    (found,) = figures_of(_result(20))
    assert found.before_per_s == 10
    assert (found.peak_per_s, found.peak_at_s) == (30, 10)
    assert found.amplification == 3
    assert (found.disturbed_s, found.recovery_s) == (10, 5)
    assert (found.completed, found.expired) == (300, 7)


def test_chance_does_not_prevent_recovery() -> None:
    """With less than one operation per second and client, seconds have 7, 10 or 13 operations."""
    array = _result(20).array()
    array[0, :, Count.COMPLETED] = array[0, :, Count.COMPLETED] > 0
    for first, more in ((0, -3), (10, 3)):
        array[0, first::30, Count.COMPLETED] += more
    array[0, 100:200, Count.COMPLETED] = 0
    (found,) = figures_of(Result(**{**_fields(_result(20)), "counts": array.tolist()}))
    assert found.recovery_s == 5


def test_a_fleet_that_stays_slow_has_not_recovered() -> None:
    slow = _result(20)
    array = slow.array()
    array[0, 200:, Count.LATENCY_US] = 150_000
    (found,) = figures_of(Result(**{**_fields(slow), "counts": array.tolist()}))
    assert (found.recovery_s, found.disturbed_s) == (None, 30)


def _fields(result: Result) -> dict[str, object]:
    return {name: getattr(result, name) for name in result.__struct_fields__}


def test_the_range_over_the_seeds_is_described() -> None:
    rows = dict(describe(figures_of(_result(20, 22, 26))))
    assert rows["seconds with fewer, or much later, operations than before"] == "12 (10 to 16)"
    assert recovery(figures_of(_result(20, 38))) == "5; 1 of 2 seeds did not recover"
    assert recovery(figures_of(_result(38))) == "not within the run"


def test_a_result_is_the_same_after_writing_and_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _result(20, 22)
    write(result, tmp_path)
    assert read(tmp_path) == read(tmp_path / "result.json") == result
    table = pq.read_table(tmp_path / "result.parquet")
    assert table.num_rows == 800
    assert sum(table["completed"].to_pylist()) == 300 + 280
    limited = replace(result, fairness=[Fairness(0.5, 1200)] * 2)
    write_report(tmp_path / "report.html", [result, limited], ["one", "<b>"])
    page = (tmp_path / "report.html").read_text()
    assert page.count("<svg") == 7
    with monkeypatch.context() as patch:
        patch.setattr("sluice.fleet.report.plots._svg", lambda figure: "<svg></svg>")  # drawn above
        write_report(tmp_path / "report.html", [result, result], ["one", "two"])
    assert (tmp_path / "report.html").read_text().count("<svg") == 6
    assert dict(describe(figures_of(limited), limited.fairness))["99th percentile of throttle times, ms"] == "1,200"
    assert "&lt;b&gt;" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    ).replace("https://matplotlib.org", "")


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "No such file"), (b"{}", "expected a result of `sluice fleet")]
)
def test_a_file_that_is_no_result_is_refused(content: bytes | None, problem: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(ConfigError, match=problem):
        read(tmp_path / "result.json")


def _job(number: int) -> int:
    if number == 3:
        raise KeyboardInterrupt
    return number * 10


def test_results_before_ctrl_c_are_kept() -> None:
    assert map_jobs(_job, [1, 2, 3, 4], 1, None) == [10, 20, None, None]
    with pytest.raises(KeyboardInterrupt):
        map_jobs(_job, [3, 1], 1, None)


def test_a_fleet_larger_than_the_memory_is_refused() -> None:
    schedule = schedule_with(brokers=3, duration="1s")
    ensure_possible([Group("a", ClientModel(), 1000)], schedule, 2)
    with pytest.raises(SluiceError, match=r"fleet: 1,000,000,000,000 clients in 2 processes need about .* GiB"):
        ensure_possible([Group("a", ClientModel(), 10**12)], schedule, 2)


def test_a_quota_of_an_unknown_client_is_refused() -> None:
    quota = {"client_id": "b", "producer_byte_rate": 1000}
    schedule = schedule_with({"at": "1s", "quota": quota}, brokers=3, duration="9s")
    ensure_possible([Group("b", ClientModel(), 1)], schedule, 1)
    with pytest.raises(SluiceError) as raised:
        ensure_possible([Group("a", ClientModel(), 1)], schedule, 1)
    assert str(raised.value) == "test: quota.client_id: expected <default> or a model of the fleet (a), got b"
