"""The `lint` job: journals are read in parallel, and each client and group is judged where all its lines are.

Each input is one journal: a file, or a folder with its parts in the order of their names. Splits of the files are read
in parallel, and their lines go to the partitions of their clients and groups (routing.py). There they are sorted by
their place in the journal, and folded and judged by the code of `sluice lint`. What clients and groups contribute to
the facts of topics is merged by the driver. So the result is that of `sluice lint`.

Between the steps Spark shuffles compressed lines. Only small counters remain of a client's events, so memory depends on
the number of clients in a partition.

Executors need this package, and the input and output at the same paths.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec
from pyarrow import parquet

from sluice.errors import SluiceError
from sluice.journal_events import AnyEvent, blocks_of, decode, decode_lines
from sluice.lint.facts.topics import TopicFacts, Topics
from sluice.lint.findings import Judged
from sluice.lint.registry import all_rules
from sluice.lint.rule import Scope
from sluice.lint.run import Fold, Rules, judge_topics, no_collection
from sluice.spark.charges.charges import MOST_TEXT
from sluice.spark.journal_parquet import lines_of
from sluice.spark.plan.tables import Writer
from sluice.spark.splits import Split, batches, blocks, open_file, splits_of

from .routing import Bundle, Routed, unpacked
from .tables import QUARANTINE, TABLES, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
    "spark.shuffle.compress": "false",  # the lines are compressed
    "spark.shuffle.spill.compress": "false",
}
_TASKS_PER_CORE = 8  # balances load: a task with large clients should not be the only one left
_SPLITS_PER_TASK = 2  # at least; bounds the clients of a task

_FORMS = ("parquet", "text", "gzip")

Blocks = Callable[[Split], Iterator[bytes]]


class Source(NamedTuple):
    """A split of the journal with this number."""

    journal: int
    split: Split


class Count(NamedTuple):
    """The key of a number in the summary; for a client without findings, `rule` is ""."""

    rule: str
    software_name: str
    software_version: str


class Summary(msgspec.Struct):
    """What one task, or all of them, found.

    events: number of events read
    lost: number of events that the journals had lost
    quarantined: number of lines that are no events
    findings: number of clients with a finding of the rule, and of all clients, by software
    subjects: number of groups and topics with a finding, by rule
    topics: the facts of topics by journal, before the last step
    """

    events: int = 0
    lost: int = 0
    quarantined: int = 0
    findings: dict[Count, int] = {}
    subjects: dict[str, int] = {}
    topics: dict[tuple[int, str], TopicFacts] = {}

    def add(self, other: "Summary") -> None:
        self.events += other.events
        self.lost += other.lost
        self.quarantined += other.quarantined
        for key, count in other.findings.items():
            self.findings[key] = self.findings.get(key, 0) + count
        for rule, count in other.subjects.items():
            self.subjects[rule] = self.subjects.get(rule, 0) + count
        for name, facts in other.topics.items():
            self.topics.setdefault(name, TopicFacts()).merge(facts)


_Place = tuple[int, int]  # of a split: the partition, and its number in reading order
_Routed = tuple[_Place, tuple[int, Bundle] | Summary]


def sources_of(inputs: Sequence[str]) -> list[Source]:
    """Return the splits of journals. Raises SluiceError."""
    found = [Source(number, split) for number, path in enumerate(inputs) for split in splits_of([path])]
    for source in found:
        if source.split.form not in _FORMS:
            raise SluiceError(f"{source.split.path}: {source.split.form}")
    return found


def lint_journals(
    session: "SparkSession",
    sources: Sequence[Source],
    journals: Sequence[str],
    rule_ids: Sequence[str],
    out: Path,
    read: Blocks | None = None,
) -> Summary:
    """Judge the journals with these names, and write the tables; `read` yields the lines of a split."""
    context, out = session.sparkContext, out.absolute()
    partitions = max(context.defaultParallelism * _TASKS_PER_CORE, len(sources) // _SPLITS_PER_TASK)
    found = (
        context.parallelize(list(enumerate(sources)), len(sources))
        .mapPartitions(partial(_route, partitions=partitions, journals=journals, out=out, read=read or lines_of_split))
        .repartitionAndSortWithinPartitions(partitions, _partition)
        .mapPartitionsWithIndex(
            partial(_judge, journals=journals, rule_ids=rule_ids, out=out, parts_before=len(sources))
        )
    )
    whole = Summary()
    for summary in found.collect():
        whole.add(summary)
    _judge_topics(whole, journals, _rules(rule_ids), out, part=partitions)
    return whole


def _judge_topics(summary: Summary, journals: Sequence[str], rules: Rules, out: Path, part: int) -> None:
    tables = _Tables(out, part)
    for number, journal in enumerate(journals):
        topics = Topics()
        topics.update((name, facts) for (of, name), facts in summary.topics.items() if of == number)
        for judged in judge_topics(topics, rules):
            tables.add(judged, journal)
            _count(judged, summary)
    tables.close()


def lines_of_split(split: Split) -> Iterator[bytes]:
    if split.form == "parquet":
        with open_file(split.path) as opened:
            for batch in batches(parquet.ParquetFile(opened), split):
                yield lines_of(split.path, batch)
    else:
        yield from (block for _, block in blocks(split))


# -- in Spark's workers ------------------------------------------------------------------------------------------------


def _partition(place: _Place) -> int:
    return place[0]


def _route(
    numbered: Iterable[tuple[int, Source]], partitions: int, journals: Sequence[str], out: Path, read: Blocks
) -> Iterator[_Routed]:
    for number, source in numbered:
        routed = Routed(partitions)
        for block in read(source.split):
            routed.take(block)
        quarantine = Writer(out, QUARANTINE, TABLES[QUARANTINE], number)
        for line, reason in routed.invalid:
            quarantine.add(_quarantined(journals[source.journal], line, reason))
        quarantine.close()
        for partition, bundle in routed.bundles():
            yield (partition, number), (source.journal, bundle)
        yield (number % partitions, number), Summary(routed.events, routed.lost, len(routed.invalid))


def _judge(
    part: int, rows: Iterable[_Routed], journals: Sequence[str], rule_ids: Sequence[str], out: Path, parts_before: int
) -> Iterator[Summary]:
    folds: defaultdict[int, Fold] = defaultdict(Fold)
    summary = Summary()
    quarantine = Writer(out, QUARANTINE, TABLES[QUARANTINE], parts_before + part)
    with no_collection():
        for _, row in rows:
            if isinstance(row, Summary):
                summary.add(row)
                continue
            journal, bundle = row
            for line, reason in _fold(folds[journal], bundle):
                quarantine.add(_quarantined(journals[journal], line, reason))
                summary.quarantined += 1
    quarantine.close()
    tables = _Tables(out, part)
    for journal, fold in folds.items():
        for judged in fold.judged(_rules(rule_ids)):
            tables.add(judged, journals[journal])
            _count(judged, summary)
            for name, facts in judged.topics.items():
                summary.topics.setdefault((journal, name), TopicFacts()).merge(facts)
    tables.close()
    yield summary


def _fold(fold: Fold, bundle: Bundle) -> list[tuple[bytes, str]]:
    """Add events to the facts of their clients, or groups; return invalid lines with the reason."""
    invalid: list[tuple[bytes, str]] = []
    for block in blocks_of(unpacked(bundle)):
        try:
            events = decode_lines(block)
        except msgspec.DecodeError:
            events = list(_valid(block, invalid))
        fold.take(events, bundle.scope)
    return [] if bundle.scope is Scope.GROUP else invalid  # those of a group are also among those of a client


def _valid(lines: bytes, invalid: list[tuple[bytes, str]]) -> Iterator[AnyEvent]:
    for line in lines.split(b"\n"):
        try:
            yield decode(line)
        except msgspec.DecodeError as error:
            invalid.append((line, str(error)))


def _quarantined(journal: str, line: bytes, reason: str) -> tuple[str, str, str]:
    return journal, reason, line[: 4 * MOST_TEXT].decode(errors="backslashreplace")[:MOST_TEXT]


def _rules(ids: Sequence[str]) -> Rules:
    return [rule for name, rule in all_rules().items() if name in ids]


class _Tables:
    """One part of each table."""

    def __init__(self, out: Path, part: int) -> None:
        self._writers = {
            name: Writer(out, name, columns, part) for name, columns in TABLES.items() if name != QUARANTINE
        }

    def add(self, judged: Judged, journal: str) -> None:
        for table, row in rows_of(judged, journal):
            self._writers[table].add(row)

    def close(self) -> None:
        for writer in self._writers.values():
            writer.close()


def _count(judged: Judged, summary: Summary) -> None:
    if judged.client is None:
        for finding in judged.findings:
            summary.subjects[finding.rule] = summary.subjects.get(finding.rule, 0) + 1
        return
    key = judged.client.key
    for rule in ("", *(finding.rule for finding in judged.findings)):
        count = Count(rule, key.software_name, key.software_version)
        summary.findings[count] = summary.findings.get(count, 0) + 1
