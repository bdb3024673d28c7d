"""The demo's output."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from textwrap import fill
from typing import Protocol

from rich import box
from rich.columns import Columns
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .metrics import Scrape
from .trace import Client
from .verdict import METHOD, MOST_OFF_QUOTA, VIRTUAL, Result

_NOW_MS = 1000.0  # over less time, the figures of a throttled client flicker
_LINE_EVERY_MS = 5000.0
_PROSE_COLUMNS = 80
_BAR_COLUMNS = 20
_LEGEND = "A new client may send ten seconds' worth of its quota at once; then it is throttled until that has expired."
# One cell of the bar is 10 % of the quota; the bar ends above any rate over the windows.
_CELLS_PER_QUOTA, _CELLS = 10, 12


class Screen(Protocol):
    def show(self, scrape: Scrape, now_ms: float) -> None:
        """Show the current state; `scrape` has the broker's latest metrics."""


@contextmanager
def open_screen(
    console: Console, clients: Sequence[Client], where: str, started_ms: float, seconds: int
) -> Iterator[Screen]:
    if not console.is_terminal:
        console.print(where, highlight=False)
        yield _Lines(console, clients, started_ms)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield _LiveTable(live, clients, where, started_ms, seconds)


class _LiveTable:
    def __init__(self, live: Live, clients: Sequence[Client], where: str, started_ms: float, seconds: int) -> None:
        self._live = live
        self._clients = clients
        self._where = where
        self._started_ms = started_ms
        self._seconds = seconds

    def show(self, scrape: Scrape, now_ms: float) -> None:
        at_s = (now_ms - self._started_ms) / 1e3
        headline = Columns(
            [
                Text(f"{self._where}, {at_s:2.0f} of {self._seconds} s", style="dim"),
                ProgressBar(total=self._seconds, completed=min(at_s, self._seconds), width=_BAR_COLUMNS),
            ]
        )
        table = live_table(self._clients, scrape, now_ms)
        self._live.update(Group(headline, Text(), table, Text(), Text(_LEGEND, style="dim")), refresh=True)


class _Lines:
    def __init__(self, console: Console, clients: Sequence[Client], started_ms: float) -> None:
        self._console = console
        self._clients = clients
        self._started_ms = started_ms
        self._next_ms = started_ms + _LINE_EVERY_MS

    def show(self, scrape: Scrape, now_ms: float) -> None:
        if now_ms >= self._next_ms:
            self._next_ms += _LINE_EVERY_MS
            line = progress_line(self._clients, scrape, (now_ms - self._started_ms) / 1e3)
            self._console.print(line, soft_wrap=True, highlight=False)


def live_table(clients: Sequence[Client], scrape: Scrape, now_ms: float) -> Table:
    table = _table("client", "library", "quota MB/s", "now MB/s", "delay", "total", "broker's rate")
    for client in clients:
        table.add_row(
            Text(client.name, style="bold"),
            client.library,
            _mb(client.quota),
            _mb(client.trace.byte_rate(now_ms - _NOW_MS, now_ms)),
            f"{_throttle_ms_now(client, now_ms) / 1e3:.2f} s",
            f"{scrape.throttle_s(client.kind, client.name):.1f} s",
            _bar(scrape.byte_rate(client.kind, client.name) / client.quota),
        )
    return table


def progress_line(clients: Sequence[Client], scrape: Scrape, at_s: float) -> str:
    parts = [
        f"{client.name} {client.trace.payload_bytes / 1e6:.1f} MB"
        f" throttled {scrape.throttle_s(client.kind, client.name):.1f} s"
        for client in clients
    ]
    return f"{at_s:3.0f} s  " + ", ".join(parts)


def print_summary(console: Console, results: Sequence[Result], started_ms: float) -> None:
    table = _table("client", "quota MB/s", "got MB/s", "of quota", "virtual", "whole cycles", "throttled", "")
    for result in results:
        client, virtual = result.client, result.virtual_byte_rate
        table.add_row(
            Text(client.name, style="bold"),
            _mb(client.quota),
            _mb(result.byte_rate),
            f"{result.byte_rate / client.quota:.1%}",
            f"{virtual / client.quota:.1%}" if virtual else "",
            _cycles(result, started_ms),
            f"{result.throttle_s:.1f} s",
            Text("off", style="bold red") if result.problems else Text("ok", style="green"),
        )
    console.print()
    console.print(table)
    console.print()
    console.print(fill(f"{METHOD} {VIRTUAL}", min(console.width, _PROSE_COLUMNS)) + "\n", highlight=False)
    problems = [problem for result in results for problem in result.problems]
    for problem in problems:
        console.print(Text(f"{problem}.", style="bold red"))
    if not problems:
        console.print(Text(_good_end(results), style="bold green"))


def _good_end(results: Sequence[Result]) -> str:
    throttled = [result.client.name for result in results if result.client.exceeds_quota]
    unthrottled = [result.client.name for result in results if not result.client.exceeds_quota]
    return (
        f"{', '.join(throttled)}: within {MOST_OFF_QUOTA:.0%} of their quotas. "
        f"{', '.join(unthrottled)}, which sends less than its quota, was never throttled."
    )


def _cycles(result: Result, started_ms: float) -> str:
    if result.cycles is None:
        return ""
    start_s, end_s = ((at_ms - started_ms) / 1e3 for at_ms in (result.cycles.start_ms, result.cycles.end_ms))
    return f"{result.cycles.count} ({start_s:.0f}-{end_s:.0f} s)"


_LEFT = ("client", "library", "broker's rate", "")


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for name in columns:
        table.add_column(name, justify="left" if name in _LEFT else "right", no_wrap=True)
    return table


def _mb(byte_count: float) -> str:
    return f"{byte_count / 1e6:.2f}"


def _throttle_ms_now(client: Client, now_ms: float) -> int:
    """Return the current throttle time, or one that has just ended, because the next usually follows soon."""
    last = client.trace.exchanges[-1:]
    return last[0].throttle_ms if last and last[0].answered_ms + last[0].throttle_ms + _NOW_MS > now_ms else 0


def _bar(of_quota: float) -> Text:
    cells = min(_CELLS, round(of_quota * _CELLS_PER_QUOTA))
    within = min(cells, _CELLS_PER_QUOTA)
    bar = Text("━" * within, style="green")
    bar.append("━" * (cells - within), style="yellow")
    bar.append("─" * (_CELLS - cells), style="dim")
    bar.append(f" {of_quota:4.0%}")
    return bar
