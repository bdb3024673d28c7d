"""The campaign `lint-scale`: lint simulated journals on Spark, and compare its results and rate with a local run.

Rates are events per second of CPU time, so that other programs on the machine disturb them less. That of Spark is
without its start and the generation of the events.
"""

import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from time import perf_counter, process_time
from typing import NamedTuple

import click

from sluice.cli.journal.sources import read_events
from sluice.journal_events import decode_lines
from sluice.lint.registry import all_rules
from sluice.lint.run import fold
from sluice.spark.lint.job import SETTINGS, Source, Summary, lint_journals
from sluice.spark.lint.tables import FINDINGS, TABLES
from sluice.spark.plan.tables import read_table
from sluice.spark.session import open_session_without_kafka
from sluice.spark.splits import Split
from tools.lint_scale.generator import SLOTS_PER_HOUR, Part, lines

_INTERVAL_S = 0.2
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Used(NamedTuple):
    """What a process used: CPU time in seconds, and its highest resident memory in bytes."""

    name: str
    cpu_s: float
    most_bytes: int


class Descendants:
    """Samples all descendants of this process while it is open; `used` has one row per process."""

    def __init__(self) -> None:
        self.used: dict[int, Used] = {}
        self._is_over = Event()
        self._thread = Thread(target=self._poll, daemon=True)

    def __enter__(self) -> "Descendants":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def cpu_s(self) -> float:
        """Return the CPU time so far."""
        self._sample()
        return sum(each.cpu_s for each in self.used.values())

    def most_bytes(self, name: str) -> int:
        """Return the highest resident memory of one process whose name begins so."""
        return max((each.most_bytes for each in self.used.values() if each.name.startswith(name)), default=0)

    def _poll(self) -> None:
        while not self._is_over.wait(_INTERVAL_S):
            self._sample()

    def _sample(self) -> None:
        parents = dict(_stats())
        for pid, (name, _, cpu_s, rss) in parents.items():
            if self._descends(pid, parents):
                before = self.used.get(pid, Used(name, 0, 0))
                self.used[pid] = Used(name, max(cpu_s, before.cpu_s), max(rss, before.most_bytes))

    def _descends(self, pid: int, stats: dict[int, tuple[str, int, float, int]]) -> bool:
        own = os.getpid()
        while pid in stats and pid != own:
            pid = stats[pid][1]
            if pid == own:
                return True
        return False


def _stats() -> Iterator[tuple[int, tuple[str, int, float, int]]]:
    """Yield each process's id, and its name, parent, CPU time and resident memory."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            begin, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue  # it ended
        fields = rest.split()
        pid, name = begin.split("(", 1)
        yield int(pid), (name, int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE)


CLIENTS = 2000  # of a journal
SLOTS = 1000  # of a journal: ten hours
_SLOTS_OF_SPLIT = 50
_LOCAL_CLIENTS, _LOCAL_EVENTS = 100, 100_000
_MIB = 1 << 20


def parts_of(events: int) -> list[Part]:
    """Return the parts of journals with this number of events, or a little more."""
    found, left, journal = [], events, 0
    while left > 0:
        slots = min(SLOTS, -(-left // CLIENTS))
        found += [
            Part(journal, CLIENTS, at, min(at + _SLOTS_OF_SPLIT, slots)) for at in range(0, slots, _SLOTS_OF_SPLIT)
        ]
        left, journal = left - slots * CLIENTS, journal + 1
    return found


def read(split: Split) -> Iterator[bytes]:
    """Generate the lines of a split, whose path is the number of the journal."""
    return lines(Part(int(split.path), CLIENTS, split.begin, split.end))


@click.command()
@click.option("--events", default=100_000_000, show_default=True, help="Number of events.")
@click.option("--master", default="local[2]", show_default=True, help="Spark master.")
def main(events: int, master: str) -> None:
    """Lint simulated journals, and print rates and memory."""
    folder = Path(tempfile.mkdtemp(prefix="lint-scale-"))
    try:
        local = local_rate(folder / "journal.ndjson")
        print(f"local: {local:,.0f} events per second of CPU time, {_LOCAL_CLIENTS} clients", flush=True)
        generating_s = generating_cpu_s()
        on_spark(events, master, folder / "out", local, generating_s)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def local_rate(path: Path) -> float:
    with path.open("wb") as file:
        file.writelines(lines(Part(0, _LOCAL_CLIENTS, 0, _LOCAL_EVENTS // _LOCAL_CLIENTS)))
    rules, best = list(all_rules().values()), 0.0
    for _ in range(3):
        began = process_time()
        found = fold(read_events(str(path))).result(rules)
        best = max(best, found.events / (process_time() - began))
    path.unlink()
    return best


def generating_cpu_s() -> float:
    """Return the CPU time of generating one event."""
    part = Part(0, CLIENTS, 0, _SLOTS_OF_SPLIT)
    began = process_time()
    for _ in lines(part):
        pass
    return (process_time() - began) / part.events


def on_spark(events: int, master: str, out: Path, local: float, generating_s: float) -> None:
    parts = parts_of(events)
    sources = [Source(each.journal, Split(str(each.journal), "text", each.begin, each.end)) for each in parts]
    journals = [f"journal-{number}" for number in range(parts[-1].journal + 1)]
    rules = list(all_rules())
    with Descendants() as processes:
        session = open_session_without_kafka("lint-scale", master=master, settings=SETTINGS)
        lint_journals(session, sources[:2], journals, rules, out.with_name("start"), read)
        started_s, began = processes.cpu_s(), perf_counter()
        found = lint_journals(session, sources, journals, rules, out, read)
        cpu_s, took_s = processes.cpu_s() - started_s, perf_counter() - began
    session.stop()
    total = sum(each.events for each in parts)
    assert found.events == total, f"{found.events} of {total} events were read"
    rate = total / (cpu_s - total * generating_s)
    clients = sum(count for key, count in found.findings.items() if not key.rule)
    hours = total / SLOTS_PER_HOUR
    print(f"Spark {master}: {total:,} events of {clients:,} clients, {hours:,.0f} client-hours, in {took_s:.0f} s")
    print(
        f"  {rate:,.0f} events per second of CPU time, without their generation: {rate / local:.2f} of the local rate"
    )
    for name in ("java", "python"):
        print(f"  memory of a {name} process: at most {processes.most_bytes(name) / _MIB:,.0f} MiB")
    check(found, out, parts)


def check(found: Summary, out: Path, parts: list[Part]) -> None:
    """Compare the findings about the first journal with those of a local run."""
    events = (decode_lines(block) for part in parts if part.journal == 0 for block in lines(part))
    expected = Counter(each.rule for each in fold(events).result(list(all_rules().values())).findings)
    columns = TABLES[FINDINGS]
    journal, rule = list(columns).index("journal"), list(columns).index("rule")
    rows = Counter(row[rule] for row in read_table(out, FINDINGS, columns) if row[journal] == "journal-0")
    assert rows == expected, f"Spark found {rows}, a local run {expected}"
    print(f"  findings about the first journal, as of a local run: {dict(expected)}")


if __name__ == "__main__":
    main()
