"""Reproduce the defects in docs/findings and draw their plots: `python -m tools.docs.results.findings [NAME ...]`.

Each takes less than a minute. A defect that is gone, because a newer version of the client is installed, is reported.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import FindingKind, State, SubjectResult
from sluice.audit.judge.observer.batches import produce_requests, produce_sequences
from sluice.audit.report.files import read_report
from sluice.audit.runs.observation_files import observation_file, read_observations
from sluice.journal_events import ConnectionOpened, Request

FOLDER = Path(__file__).parents[3] / "docs" / "findings"
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 640, 260, 60, 40, 16
_COUNTED_S = 0.1
BLUE, RED, GREY = "#1a4fa3", "#c03221", "#8a8f98"


class Dot(NamedTuple):
    x: float
    y: float
    color: str = BLUE


class Plot(NamedTuple):
    along: str
    up: str
    dots: Callable[[Observation], Iterable[Dot]]


class Defect(NamedTuple):
    """What an audit of one probe shows: a finding of a kind, or a deviation from a statement."""

    subject: str
    version: str  # that has it
    probe: str
    shows: FindingKind | str
    plot: Plot

    def command(self, out: str = "report") -> list[str]:
        return ["sluice", "audit", "run", "--subject", self.subject, "--probe", self.probe, "--out", out]

    def why(self, result: SubjectResult) -> str:
        """Return the words of the report; "" if the defect is gone."""
        found = [each.why for each in result.findings if each.kind == self.shows]
        deviations = [each for each in result.verdicts if each.state is State.DEVIATES]
        found += [each.why for each in deviations if each.statement == self.shows]
        return found[0] if found else ""


def _seconds(run: Observation, at_ns: int) -> float:
    return (at_ns - run.began_ns) / 1e9


def _per_interval(run: Observation, times_ns: Iterable[int]) -> Iterator[Dot]:
    counts: dict[int, int] = {}
    for at_ns in times_ns:
        number = int(_seconds(run, at_ns) / _COUNTED_S)
        counts[number] = counts.get(number, 0) + 1
    return (Dot(number * _COUNTED_S, count) for number, count in counts.items())


def _connections(run: Observation) -> Iterator[Dot]:
    return _per_interval(run, (event.at_ns for event in run.events if isinstance(event, ConnectionOpened)))


def _metadata(run: Observation) -> Iterator[Dot]:
    requests = (event for event in run.events if isinstance(event, Request) and event.api == "Metadata")
    return _per_interval(run, (request.received_ns for request in requests))


def _waits(run: Observation) -> Iterator[Dot]:
    longest = max(produce_sequences(run.events), key=lambda each: len(each.attempts))
    return (Dot(number, wait) for number, wait in enumerate(longest.gaps_ms(), 1))


def _records(run: Observation) -> Iterator[Dot]:
    ended = {each.record for each in run.callbacks if each.event in ("delivered", "failed")}
    for each in run.callbacks:
        if each.event == "sent":
            yield Dot(_seconds(run, each.at_ns), each.record, GREY if each.record in ended else RED)
        elif each.event in ("delivered", "failed"):
            yield Dot(_seconds(run, each.at_ns), each.record)


def _numbers(run: Observation) -> Iterator[Dot]:
    first: dict[int, list[str]] = {}
    for request in produce_requests(run.events):
        batch = request.partitions[0]
        content = first.setdefault(batch.base_sequence, batch.record_hashes)
        is_first = content == batch.record_hashes
        yield Dot(_seconds(run, request.received_ns), batch.base_sequence, BLUE if is_first else RED)


_CONNECTIONS = Plot("seconds", "connections per 100 ms", _connections)
_METADATA = Plot("seconds", "Metadata requests per 100 ms", _metadata)
_WAITS = Plot("retry", "wait before it, ms", _waits)
_RECORDS = Plot("seconds", "record: sent (grey), ended (blue), never ended (red)", _records)
_NUMBERS = Plot("seconds", "sequence number: first records (blue), other records (red)", _numbers)
DEFECTS = {
    "librdkafka-backoff-wraps": Defect(
        "confluent-kafka-idempotent", "2.16.1", "long-outage", FindingKind.WRAPPED, _WAITS
    ),
    "aiokafka-metadata-storm": Defect("aiokafka", "0.14.0", "delivery-leader-gone", FindingKind.STORM, _METADATA),
    "kafka-python-connection-storm": Defect(
        "kafka-python", "3.0.12", "reconnect-closed", FindingKind.STORM, _CONNECTIONS
    ),
    "kafka-python-lost-callbacks": Defect("kafka-python", "3.0.12", "delivery-mute", "KIP-91/2", _RECORDS),
    "kafkajs-lost-records": Defect("kafkajs", "2.2.4", "produce-mute", FindingKind.LOST, _NUMBERS),
    "franz-go-connection-bursts": Defect("franz-go", "1.22.2", "reconnect-closed", FindingKind.STORM, _CONNECTIONS),
}


def svg(plot: Plot, dots: Sequence[Dot], until: float = 0.0) -> str:
    """Return the dots with axes from 0, at least to `until`."""
    across = max((until, *(each.x for each in dots))) or 1
    most = max((each.y for each in dots), default=0) or 1
    right, base = _WIDTH - 16, _HEIGHT - _BOTTOM
    points = "".join(
        f'<circle cx="{_LEFT + (right - _LEFT) * max(x, 0) / across:.1f}" '
        f'cy="{base - (base - _TOP) * max(y, 0) / most:.1f}" r="2.5" fill="{color}"/>'
        for x, y, color in dots
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f'<path d="M{_LEFT} {_TOP}V{base}H{right}" fill="none" stroke="{GREY}"/>'
        f'<text x="{_LEFT - 6}" y="{_TOP + 8}" text-anchor="end">{most:.4g}</text>'
        f'<text x="{_LEFT - 6}" y="{base}" text-anchor="end">0</text>'
        f'<text x="{right}" y="{base + 16}" text-anchor="end">{across:.3g}</text>'
        f'<text x="{(_LEFT + right) / 2:.0f}" y="{_HEIGHT - 8}" text-anchor="middle">{plot.along}</text>'
        f'<text x="{_LEFT + 8}" y="{_TOP + 8}">{plot.up}</text>{points}</svg>\n'
    )


def reproduce(defect: Defect, folder: Path) -> SubjectResult:
    arguments = defect.command(str(folder))[1:]
    subprocess.run([sys.executable, "-m", "sluice", *arguments], check=True, capture_output=True)
    return read_report(folder).subjects[0]


def plotted(defect: Defect, folder: Path) -> str:
    """Return the plot of the run with the most to show."""
    runs = read_observations(observation_file(folder, 0))
    found = [(list(defect.plot.dots(run)), _seconds(run, run.ended_ns)) for run in runs if not run.problem]
    dots, seconds = max(found, key=lambda each: (sum(dot.color == RED for dot in each[0]), len(each[0])))
    return svg(defect.plot, dots, seconds if defect.plot.along == "seconds" else 0.0)


def main(names: Sequence[str]) -> None:
    for name in names or DEFECTS:
        with TemporaryDirectory() as folder:
            result = reproduce(DEFECTS[name], Path(folder))
            why = DEFECTS[name].why(result)
            print(f"{name}: {why or 'not reproduced'} ({result.subject.version}, {result.seconds:.0f} s)", flush=True)
            if why:
                (FOLDER / f"{name}.svg").write_text(plotted(DEFECTS[name], Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
