"""The campaign `lint-scale`: lint simulated journals on Spark, and compare its results and rate with a local run.

Rates are events per second of CPU time, so that other programs on the machine disturb them less. That of Spark is
without its start and the generation of the events.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time

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
from tools.lint_scale.processes import Descendants

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
