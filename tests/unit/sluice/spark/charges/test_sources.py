"""Splits of files: every line and row is read once, and invalid input does not end the job."""

import gzip
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest

from sluice.errors import SluiceError
from sluice.spark import splits
from sluice.spark.charges import sources
from sluice.spark.charges.charges import QUARANTINED, USED, Quarantined
from sluice.spark.charges.sources import read
from sluice.spark.splits import splits_of
from tests.support.packed_charges import rows_in

EVENT = (
    '{{"kind":"request","broker":1,"connection":1,"client_id":"shop","principal":"User:bob","api":"Produce",'
    '"version":9,"started_ns":0,"answered_ns":{at_ns},"request_bytes":10,"response_bytes":10,"throttle_time_ms":0}}\n'
)


def lines(count: int) -> str:
    return "".join(EVENT.format(at_ns=number) for number in range(count))


def all_of(path: Path) -> tuple[list[int], list[Quarantined], Counter[str]]:
    """Return the times of all charges, the quarantined lines, and the counts."""
    times, quarantined, counts = [], [], Counter[str]()
    for split in splits_of([str(path)]):
        *parts, last = read(split, "client-id")
        assert last.is_last
        assert not any(part.is_last or part.counts for part in parts)
        for found in (*parts, last):
            times += [row[0] for packed in found.charges.values() for row in rows_in(packed)]
            quarantined += found.quarantined
            counts.update(found.counts)
    return times, quarantined, counts


@pytest.mark.parametrize("split_bytes", [1, 100, 230, 231, 5000, 10**9])
@pytest.mark.parametrize("block_bytes", [1, 64, 1000, 10**9])
def test_every_line_is_read_once_for_any_split_size(
    split_bytes: int, block_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splits, "_SPLIT_BYTES", split_bytes)
    monkeypatch.setattr(splits, "BLOCK_BYTES", block_bytes)
    file = tmp_path / "a.ndjson"
    file.write_text(lines(12) + "broken\n\n" + lines(3).rstrip("\n"))
    times, quarantined, counts = all_of(file)
    assert times == [*range(12), *range(3)]
    assert [(bad.position, bad.text) for bad in quarantined] == [(len(lines(12)), "broken")]
    assert counts == {USED: 15, QUARANTINED: 1}


def test_buffered_rows_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "BLOCK_BYTES", 300)
    monkeypatch.setattr(sources, "ROWS_AT_ONCE", 4)
    file = tmp_path / "a.ndjson"
    file.write_text(lines(20))
    (split,) = splits_of([str(file)])
    sizes = [sum(len(rows_in(packed)) for packed in found.charges.values()) for found in read(split, "client-id")]
    assert sum(sizes) == 20
    assert max(sizes) <= 6


def test_buffered_quarantined_lines_are_bounded(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    file.write_text("x\n" * 5000)
    (split,) = splits_of([str(file)])
    sizes = [len(found.quarantined) for found in read(split, "client-id")]
    assert sum(sizes) == 5000
    assert max(sizes) == 1000


def test_a_line_without_an_end_is_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "BLOCK_BYTES", 100)
    monkeypatch.setattr(splits, "_LONGEST_LINE", 1000)
    file = tmp_path / "a.log"
    file.write_bytes(b"x" * 5000 + b"\n" + lines(2).encode())
    times, quarantined, _ = all_of(file)
    assert times == [0, 1]
    assert 1 < len(quarantined) < 10


def test_a_compressed_file_is_one_split(tmp_path: Path) -> None:
    file = tmp_path / "a.ndjson.gz"
    file.write_bytes(gzip.compress(lines(5).encode()))
    assert len(splits_of([str(file)])) == 1
    assert all_of(file)[0] == list(range(5))


def test_a_truncated_gzip_file_is_read_as_far_as_possible(tmp_path: Path) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(lines(5).encode())[:-9])
    times, (bad,), counts = all_of(file)
    assert times in ([], list(range(5)))
    assert "cannot read further" in bad.reason
    assert counts[QUARANTINED] == 1


def table(count: int) -> "pa.Table":
    rows = [
        {"kind": "request", "broker": 1, "connection": 1, "client_id": "shop", "principal": "User:bob"}
        | {"api": "Produce", "version": 9, "started_ns": 0, "answered_ns": number, "request_bytes": 10}
        | {"response_bytes": 10, "throttle_time_ms": 0, "lost": 0, "at_ns": number}
        for number in range(count)
    ]
    return pa.Table.from_pylist(rows)


@pytest.mark.parametrize("split_rows", [1, 10, 25, 10**6])
def test_every_parquet_row_is_read_once_for_any_split_size(
    split_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyarrow import parquet

    monkeypatch.setattr(splits, "_SPLIT_ROWS", split_rows)
    file = tmp_path / "a.parquet"
    parquet.write_table(table(50), file, row_group_size=10)
    times, quarantined, counts = all_of(file)
    assert (times, quarantined, counts[USED]) == (list(range(50)), [], 50)


UNREADABLE = {
    "only the first bytes are those of Parquet": (b"PAR1 and no more", "invalid Parquet file"),
    "Parquet that is not a journal export": (None, "missing columns kind, at_ns, broker"),
}


@pytest.mark.parametrize(("content", "reason"), UNREADABLE.values(), ids=UNREADABLE)
def test_an_unreadable_file_is_quarantined(content: bytes | None, reason: str, tmp_path: Path) -> None:
    from pyarrow import parquet

    file = tmp_path / "a.parquet"
    if content is None:
        parquet.write_table(pa.table({"a": [1, 2]}), file)
    else:
        file.write_bytes(content)
    times, (bad,), counts = all_of(file)
    assert (times, counts) == ([], {QUARANTINED: 1})
    assert reason in bad.reason


def test_the_files_of_a_folder_are_read_in_order_except_hidden_ones(tmp_path: Path) -> None:
    for name in ("b.log", "a.log", ".hidden", "_SUCCESS"):
        (tmp_path / name).write_text("x\n")
    (tmp_path / "folder").mkdir()
    assert [Path(split.path).name for split in splits_of([str(tmp_path)])] == ["a.log", "b.log"]


def test_a_path_may_have_a_scheme(tmp_path: Path) -> None:
    (tmp_path / "a.ndjson").write_text(lines(5))
    for path in (f"file://{tmp_path}", f"file://{tmp_path}/a.ndjson"):
        (split,) = splits_of([path])
        (found,) = read(split, "client-id")
        assert found.counts == {USED: 5}


MISSING = {
    "a missing file": ("nothing.log", "nothing.log: no such file or folder"),
    "an empty folder": ("empty", "empty: no input"),
    "an empty file": ("empty.log", "empty.log: no input"),
}


@pytest.mark.parametrize(("name", "line"), MISSING.values(), ids=MISSING)
def test_missing_input_is_an_error(name: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty.log").touch()
    with pytest.raises(SluiceError, match=line):
        splits_of([str(tmp_path / name)])
