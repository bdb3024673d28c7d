"""The `lint` job has the same results as `sluice lint` for journals of several clients, groups and topics."""

import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from pyarrow import dataset

from sluice.cli.main import cli
from sluice.journal_events import decode_lines
from sluice.lint.facts.topics import Topics
from sluice.lint.registry import all_rules
from sluice.lint.run import fold, judge_topics
from sluice.spark import splits
from sluice.spark.journal_parquet import write
from sluice.spark.lint.job import lint_journals, sources_of
from sluice.spark.lint.tables import QUARANTINE, TABLES, rows_of
from tools.lint_scale.generator import Part, lines

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = all_rules()
SLOTS = 40


def journal(number: int, begin: int = 0, end: int = SLOTS) -> bytes:
    return b"".join(lines(Part(number, 60, begin, end)))


def expected(content: bytes, name: str) -> list[tuple[str, tuple[object, ...]]]:
    """Return the rows that the local run gives."""
    rules, topics = list(RULES.values()), Topics()
    found: list[tuple[str, tuple[object, ...]]] = []
    for judged in fold([decode_lines(content)]).judged(rules):
        found += rows_of(judged, name)
        for topic, facts in judged.topics.items():
            topics[topic].merge(facts)
    for judged in judge_topics(topics, rules):
        found += rows_of(judged, name)
    return found


def test_spark_finds_what_a_local_run_finds(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One journal is a folder with an NDJSON and a gzip file, in which a line is broken; the other is Parquet."""
    monkeypatch.setattr(splits, "_SPLIT_BYTES", 200_000)  # several splits, made by the driver
    folder, single, out = tmp_path / "folder", tmp_path / "single.parquet", tmp_path / "out"
    folder.mkdir()
    (folder / "1.ndjson").write_bytes(journal(1, 0, 25))
    (folder / "2.ndjson.gz").write_bytes(gzip.compress(b"broken\n" + journal(1, 25)))
    write(str(single), journal(2).decode().splitlines())
    names = ["one", "two"]
    found = lint_journals(spark, sources_of([str(folder), str(single)]), names, list(RULES), out)
    rows = [*expected(journal(1), "one"), *expected(journal(2), "two")]
    for name in TABLES:
        read = dataset.dataset(out / name, format="parquet").to_table().to_pylist()
        if name == QUARANTINE:
            assert [(each["journal"], each["text"]) for each in read] == [("one", "broken")]
        else:
            assert sorted(tuple(each.values()) for each in read) == sorted(row for table, row in rows if table == name)
    assert (found.events, found.lost, found.quarantined) == (2 * 60 * SLOTS, 0, 1)
    assert sum(count for key, count in found.findings.items() if not key.rule) == 2 * 60


def test_the_command_prints_a_summary_by_rule_and_software(spark: "SparkSession", tmp_path: Path) -> None:
    file, out = tmp_path / "journal.ndjson", tmp_path / "out"
    file.write_bytes(journal(1))
    args = ["pipeline", "lint", str(file), "--output", str(out), "--rule", "acks-below-all", "--json"]
    found = json.loads(CliRunner().invoke(cli, args, catch_exceptions=False).stdout)
    assert (found["events"], found["clients"]) == (60 * SLOTS, 60)
    assert {(each["rule"], each["of"]) for each in found["summary"]} == {("acks-below-all", 15)}
    again = CliRunner().invoke(cli, args)
    assert again.stderr == f"Error: {out}: expected a new or empty folder\n"


def test_an_unreadable_file_is_one_line(spark: "SparkSession", tmp_path: Path) -> None:
    file = tmp_path / "journal.parquet"
    file.write_bytes(b"PAR1")
    found = CliRunner().invoke(cli, ["pipeline", "lint", str(file), "--output", str(tmp_path / "out")])
    assert found.exit_code == 1
    assert found.stderr.startswith(f"Error: {file}: invalid Parquet file: ")
    assert found.stderr.count("\n") == 1
