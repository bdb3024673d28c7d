"""The drawing of `sluice top`: brokers, clients with their quotas, and fault rules. Pure."""

from collections.abc import Sequence
from datetime import UTC, datetime

from msgspec import Struct, to_builtins
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from sluice.broker.admin.resources.faults import FaultShown
from sluice.cli.faults.text import rule_words
from sluice.text.error_text import printable
from sluice.web.brokers import BrokerNow
from sluice.web.client_row import POINTS, ClientSeen
from sluice.web.meter import MeterSeen

from .feed import State
from .text import bar, short, sparkline, waits

_PARTS = 6  # brokers, and fault rules, each use at most a sixth of the height
_BAR, _MOST_SHARE = 10, 9.99
# The columns between the client and its last two minutes: title, least width, alignment.
_COLUMNS: tuple[tuple[str, int, JustifyMethod], ...] = (
    ("QUOTA", 8, "left"), ("RATE", 5, "right"), ("LIMIT", 5, "right"), ("", 4, "right"), ("USED", _BAR, "left"),
    ("DELAY", 6, "right"), ("TOTAL", 6, "right"),
)  # fmt: skip
# The sparkline uses the width that other columns leave; the name has at least 20 columns.
_LEAST_SPARK, _MOST_SPARK, _OTHER_COLUMNS = 9, 40, 80


class Display(Struct):
    """The options of the command, and the error that prevents updates."""

    sort: str = "activity"
    search: str = ""
    problem: str = ""


def screen(state: State, display: Display, width: int, height: int | None = None) -> Group:
    """Draw what fits a height, or all rows without one."""
    most = len(state.brokers) + len(state.faults) if height is None else max(1, height // _PARTS)
    head, faults = [_title(state, display, width), *_brokers(state, width, most)], _faults(state, most)
    needed = len(rows(state))
    room = needed if height is None else max(1, height - len(head) - len(faults) - 2)  # 2: table header, an empty line
    empty = [Text() for _ in range(room - needed)]
    return Group(*head, Text(), _clients(state, display, width, room), *empty, *faults)


def rows(state: State) -> list[tuple[ClientSeen, MeterSeen | None]]:
    return [(client, meter) for client in state.clients for meter in (client.meters or [None])]  # type: ignore[list-item]  # mypy joins the two lists


def _title(state: State, display: Display, width: int) -> Text:
    cluster = state.cluster
    if cluster is None:
        return _line(display.problem or "waiting for the broker", "yellow", width)
    at = datetime.fromtimestamp(state.at_ms / 1000, UTC).strftime("%H:%M:%S")
    notes = [
        *([f"filter {display.search!r}"] if display.search else []),
        *([] if cluster.counting else ["no quotas, so rates are not counted"]),
        *(["shadow mode: no client is throttled"] if cluster.quota_mode == "shadow" else []),
        *([display.problem] if display.problem else []),
    ]
    product = "sluice" if cluster.upstream is None else f"sluice proxy of {cluster.upstream},"
    text = Text(f"{product} {cluster.version}  {at}  ", style="bold")
    if notes:
        text.append(f"{', '.join(notes)}  ", style="yellow")
    text.append(f"{cluster.profile}  {cluster.bootstrap}", style="not bold")
    text.truncate(width, overflow="ellipsis")
    return text


def _first(lines: Sequence[Text], most: int) -> list[Text]:
    left_off = len(lines) - most
    return [*lines[:most], Text(f"and {left_off} more", style="dim")] if left_off > 0 else [*lines]


def _brokers(state: State, width: int, most: int) -> list[Text]:
    return _first([_broker(broker, width) for broker in state.brokers], most)


def _broker(broker: BrokerNow, width: int) -> Text:
    runs = broker.state == "running" and not broker.fenced
    state = f"{broker.state}{', fenced' if broker.fenced else ''}"
    text = Text(f"broker {broker.id} ")
    text.append(state, style="green" if runs else "red")
    text.append(
        f"  {broker.connections} connections, {broker.throttled} throttled  {short(broker.requests_per_s)} req/s"
        f"  in {short(broker.in_per_s)}B/s  out {short(broker.out_per_s)}B/s"
    )
    if broker.upstream is not None and not broker.upstream.reachable:
        text.append(f"  {broker.upstream.address} unreachable", style="red")
    text.truncate(width, overflow="ellipsis")
    return text


def _clients(state: State, display: Display, width: int, room: int) -> Table:
    found = rows(state)
    spark = max(_LEAST_SPARK, min(_MOST_SPARK, width - _OTHER_COLUMNS))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), width=width, header_style="reverse")
    table.add_column(
        f"CLIENT {state.matched}/{state.total} by {display.sort}", no_wrap=True, overflow="ellipsis", ratio=1
    )
    for title, least, justify in _COLUMNS:
        table.add_column(title, no_wrap=True, min_width=least, justify=justify)
    table.add_column("2 MINUTES", no_wrap=True, width=spark)
    for client, meter in found[:room]:
        table.add_row(*_row(state, client, meter, spark))
    return table


def _row(state: State, client: ClientSeen, meter: MeterSeen | None, spark: int) -> list[RenderableType]:
    name = printable(client.client_id) or "(no id)"
    who = name if client.user == "ANONYMOUS" else f"{name} of {printable(client.user)}"
    line = sparkline(state.points(client), state.look, POINTS, spark)
    connections = Text(who, style="bold")
    connections.append(f" {client.connections}", style="dim")
    if meter is None:
        return [connections, "", "", "", "", "", "", "", line]
    share = meter.rate / meter.bound if meter.bound else 0.0
    is_held = meter.held_until_ms > state.at_ms
    return [
        connections,
        meter.kind.removeprefix("Controller"),
        short(meter.rate),
        "-" if meter.bound is None else short(meter.bound),
        f"{min(share, _MOST_SHARE):.0%}" if meter.bound else "",
        bar(share, _BAR) if meter.bound else "",
        Text(waits(meter.held_until_ms - state.at_ms), style="red") if is_held else "",
        waits(meter.throttled_total_ms) if meter.throttled_total_ms else "",
        line,
    ]


def _faults(state: State, most: int) -> list[Text]:
    head = [Text(f"FAULTS {len(state.faults)}", style="reverse")] if state.faults else []
    return head + _first([_fault(fault) for fault in state.faults], most)


def _fault(fault: FaultShown) -> Text:
    text = Text(f"{printable(fault.id)}  ", no_wrap=True, overflow="ellipsis")
    text.append(fault.state, style="green" if fault.state == "in force" else "dim")
    text.append(f"  hit {fault.hits} of {fault.matched}  {printable(rule_words(to_builtins(fault.rule)))}")
    if fault.problem:
        text.append(f"  {printable(fault.problem)}", style="red")
    return text


def _line(words: str, style: str, width: int) -> Text:
    text = Text(printable(words), style=style)
    text.truncate(width, overflow="ellipsis")
    return text
