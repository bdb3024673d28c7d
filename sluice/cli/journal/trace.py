"""`sluice trace`."""

from collections import deque
from pathlib import Path

import click

from sluice.cli.commands import Command, Integer
from sluice.cli.options import format_option
from sluice.cli.written_file import write_file
from sluice.errors import SluiceError
from sluice.journal_events import AnyEvent, Gap
from sluice.text.json_text import json_text
from sluice.trace.build import build
from sluice.trace.compare import compare as compared
from sluice.trace.described import counted
from sluice.trace.model import Trace
from sluice.trace.page import render
from sluice.trace.perfetto import perfetto as perfetto_of
from sluice.trace.recording import Recorded, Run
from sluice.trace.stored import read_trace

from .sources import read_events

_FILE = click.Path(dir_okay=False, path_type=Path)
_TRACE = ".html"
_LAST = 16384  # events in the journal of sluice.Broker


@click.command(cls=Command)
@click.argument("source")
@click.option("--output", "-o", type=_FILE, metavar="FILE", help="HTML file to write.")
@click.option("--perfetto", type=_FILE, metavar="FILE", help="Trace for ui.perfetto.dev to write, as JSON.")
@click.option("--compare", metavar="SOURCE", help="Source of another run to show beside, such as one that passed.")
@click.option("--last", type=Integer(1), default=_LAST, show_default=True, metavar="N", help="Number of latest events.")
@click.option("--title", help="Title of the trace.  [default: SOURCE]")
@format_option
@click.option("--token", help="Token of the admin port (sluice.admin.token).")
def trace(
    source: str,
    output: Path | None,
    perfetto: Path | None,
    compare: str | None,
    last: int,
    title: str | None,
    output_format: str,
    token: str | None,
) -> None:
    """Show what happened on a time axis, and print what a reader should look at first.

    SOURCE is a file (`sluice journal export`, as NDJSON, in gzip or Parquet), - for standard input, the URL of an admin
    port, kafka://HOST:PORT/TOPIC, or a trace as HTML.
    """
    found = _read(source, last, title, token)
    if compare is not None:
        found.compare = compared(found, _read(compare, last, None, token))
    if output is not None:
        write_file(output, render(found))
    if perfetto is not None:
        write_file(perfetto, perfetto_of(found))
    click.echo(json_text(_summary(found)) if output_format == "json" else "\n".join(_lines(found)))


def _read(source: str, last: int, title: str | None, token: str | None) -> Trace:
    if source.endswith(_TRACE):
        return read_trace(Path(source))
    events: deque[AnyEvent] = deque(maxlen=last)
    count = 0
    for batch in read_events(source, token):
        count += len(batch)
        events.extend(batch)
    if not events:
        raise SluiceError(f"{source}: expected events, got none")
    if count > last:
        first = events[0]
        lost = Gap(seq=first.seq - 1, at_ns=first.at_ns, broker=-1, lost=count - last)
        return build([Recorded("", [lost, *events])], Run(title or source))
    return build([Recorded("", list(events))], Run(title or source))


def _summary(found: Trace) -> dict[str, object]:
    """Return what is printed, as JSON."""
    summary = {"title": found.title, "start_ns": found.start_ns, "end_us": found.end, "findings": found.findings}
    return summary if found.compare is None else {**summary, "differences": found.compare.differences}


def _lines(found: Trace) -> list[str]:
    """Return a summary, the findings, and the first difference."""
    requests = sum(1 for number in found.bars.correlation_id if number >= 0)
    lines = [f"{found.title}: {counted(requests, 'request')} in {found.end / 1e6:,.1f} s, "]
    lines[0] += counted(len(found.findings), "finding")
    for finding in found.findings:
        lines.append(f"{finding.severity}: {finding.title}")
        lines += (f"  {line}" for line in finding.text.splitlines())
    if found.compare is not None:
        differences = found.compare.differences
        lines += (f"first difference: +{one.at / 1e6:.3f} s {one.text}" for one in differences[:1])
        lines += [f"  and {counted(len(differences) - 1, 'other difference')}"] if len(differences) > 1 else []
        lines += [] if differences else ["no difference"]
    return lines
