"""The drawing of `sluice top`: brokers, clients with their quotas, fault rules, and a prompt. Pure."""

from collections.abc import Iterator
from datetime import UTC, datetime

from msgspec import Struct
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from sluice.cli.faults.text import FaultShown, rule_words
from sluice.text.printable import printable

from .state import Broker, Client, Meter, State
from .text import bar, short, sparkline, waits

_PARTS = 6  # brokers, and fault rules, each use at most a sixth of the height
_LOOKS = 240
_LEFT = (("QUOTA", 8),)
_RIGHT = (("RATE", 5), ("LIMIT", 5), ("", 4))
_BAR, _MOST_SHARE = 10, 9.99
# The sparkline uses the width that other columns leave; the name has at least 20 columns.
_LEAST_SPARK, _MOST_SPARK, _OTHER_COLUMNS = 9, 40, 80
KEYS = (
    ("↑ ↓", "choose a client"),
    ("s", "sort by activity, quota, throttled time or name"),
    ("/", "filter: clients whose id or user has a text; empty shows all"),
    ("u", "set the quota of the chosen client; empty removes it"),
    ("f", "add a fault rule, in the syntax of `sluice faults add`"),
    ("x", "remove a fault rule by its id, or all"),
    ("p", "pause and continue"),
    ("h or ?", "show this help; any key closes it"),
    ("q", "quit"),
)
_FOOT = "s sort  / filter  u quota  f fault  x remove  p pause  h help  q quit"


class Prompt(Struct):
    label: str
    text: str = ""


class Display(Struct):
    """The user's choices, and the parts of the screen besides the cluster's state."""

    sort: str = "activity"
    search: str = ""
    chosen: int = 0
    paused: bool = False
    help: bool = False
    prompt: Prompt | None = None
    message: str = ""
    problem: str = ""  # the error that prevents updates


def screen(state: State, display: Display, width: int, height: int) -> RenderableType:
    if display.help:
        return _help(width, height)
    most = max(1, height // _PARTS)
    head = [_title(state, display, width), *_brokers(state, width, most)]
    faults = list(_faults(state, most))
    foot = [_foot(display, width)]
    room = max(1, height - len(head) - len(faults) - len(foot) - 2)  # 2: table header and an empty line
    table = _clients(state, display, width, room)
    empty = [Text() for _ in range(room - len(rows(state)))]
    return Group(*head, Text(), table, *empty, *faults, *foot)


def rows(state: State) -> list[tuple[Client, Meter | None]]:
    return [(client, meter) for client in state.clients for meter in (client.meters or [None])]  # type: ignore[list-item]  # mypy joins the two lists


def plain(state: State, width: int) -> Group:
    display = Display(chosen=-1)
    table = _clients(state, display, width, len(rows(state)))
    return Group(
        _title(state, display, width),
        *_brokers(state, width, len(state.brokers)),
        Text(),
        table,
        *_faults(state, len(state.faults)),
    )


def _title(state: State, display: Display, width: int) -> Text:
    cluster = state.cluster
    if cluster is None:
        return _line(display.problem or "waiting for the broker", "yellow", width)
    at = datetime.fromtimestamp(state.at_ms / 1000, UTC).strftime("%H:%M:%S")
    notes = [
        *(["paused"] if display.paused else []),
        *([f"filter {display.search!r}"] if display.search else []),
        *([] if cluster.counting else ["no quotas, so rates are not counted"]),
        *([display.problem] if display.problem else []),
    ]
    text = Text(f"sluice {cluster.version}  {at}  ", style="bold")
    if notes:
        text.append(f"{', '.join(notes)}  ", style="yellow")
    text.append(f"{cluster.profile}  {cluster.bootstrap}", style="not bold")
    text.truncate(width, overflow="ellipsis")
    return text


def _brokers(state: State, width: int, most: int) -> Iterator[Text]:
    for broker in state.brokers[:most]:
        yield _broker(broker, width)
    left_off = len(state.brokers) - most
    if left_off > 0:
        yield _line(f"and {left_off} more", "dim", width)


def _broker(broker: Broker, width: int) -> Text:
    runs = broker.state == "running" and not broker.fenced
    state = f"{broker.state}{', fenced' if broker.fenced else ''}"
    text = Text(f"broker {broker.id} ")
    text.append(state, style="green" if runs else "red")
    text.append(
        f"  {broker.connections} connections, {broker.throttled} throttled  {short(broker.requests_per_s)} req/s"
        f"  in {short(broker.in_per_s)}B/s  out {short(broker.out_per_s)}B/s"
    )
    text.truncate(width, overflow="ellipsis")
    return text


def _clients(state: State, display: Display, width: int, room: int) -> Table:
    found = rows(state)
    chosen = max(0, min(display.chosen, len(found) - 1))
    first = max(0, min(chosen - room // 2, len(found) - room))
    spark = max(_LEAST_SPARK, min(_MOST_SPARK, width - _OTHER_COLUMNS))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), width=width, header_style="reverse")
    table.add_column(
        f"CLIENT {state.matched}/{state.total} by {display.sort}", no_wrap=True, overflow="ellipsis", ratio=1
    )
    for title, least in _LEFT:
        table.add_column(title, no_wrap=True, min_width=least)
    for title, least in _RIGHT:
        table.add_column(title, no_wrap=True, min_width=least, justify="right")
    table.add_column("USED", no_wrap=True, width=_BAR)
    table.add_column("DELAY", no_wrap=True, min_width=6, justify="right")
    table.add_column("TOTAL", no_wrap=True, min_width=6, justify="right")
    table.add_column("2 MINUTES", no_wrap=True, width=spark)
    for number, (client, meter) in enumerate(found[first : first + room], first):
        style = "on grey23" if number == display.chosen else ""
        table.add_row(*_row(state, client, meter, spark), style=style)
    return table


def _row(state: State, client: Client, meter: Meter | None, spark: int) -> list[RenderableType]:
    name = printable(client.client_id) or "(no id)"
    who = name if client.user == "ANONYMOUS" else f"{name} of {printable(client.user)}"
    line = sparkline(state.points(client), state.look, _LOOKS, spark)
    connections = Text(who, style="bold")
    connections.append(f" {client.connections}", style="dim")
    if meter is None:
        return [connections, "", "", "", "", "", "", "", line]
    share = meter.rate / meter.bound if meter.bound else 0.0
    is_held = meter.held_until_ms > state.at_ms
    return [
        connections,
        _KINDS.get(meter.kind, meter.kind),
        short(meter.rate),
        "-" if meter.bound is None else short(meter.bound),
        f"{min(share, _MOST_SHARE):.0%}" if meter.bound else "",
        bar(share, _BAR) if meter.bound else "",
        Text(waits(meter.held_until_ms - state.at_ms), style="red") if is_held else "",
        waits(meter.throttled_total_ms) if meter.throttled_total_ms else "",
        line,
    ]


_KINDS = {"ControllerMutation": "Mutation"}


def _faults(state: State, most: int) -> Iterator[Text]:
    if state.faults:
        yield Text(f"FAULTS {len(state.faults)}", style="reverse")
    for fault in state.faults[:most]:
        yield _fault(fault)
    left_off = len(state.faults) - most
    if left_off > 0:
        yield Text(f"and {left_off} more", style="dim")


def _fault(fault: FaultShown) -> Text:
    text = Text(f"{printable(fault.id)}  ", no_wrap=True, overflow="ellipsis")
    text.append(fault.state, style="green" if fault.state == "in force" else "dim")
    text.append(f"  hit {fault.hits} of {fault.matched}  {printable(rule_words(fault.rule))}")
    if fault.problem:
        text.append(f"  {printable(fault.problem)}", style="red")
    return text


def _foot(display: Display, width: int) -> Text:
    if display.prompt is not None:
        line = f"{display.prompt.label}: {display.prompt.text}"
        return Text(f"{line[-(width - 1) :]}█", style="bold", no_wrap=True)
    return _line(_shortened(display.message, width), "yellow", width) if display.message else _line(_FOOT, "dim", width)


def _shortened(words: str, width: int) -> str:
    """Cut the middle: an error begins with the place and ends with the value and the remedy."""
    kept = width // 2
    return words if len(words) <= width else f"{words[: width - kept - 1]}…{words[-kept:]}"


def _help(width: int, height: int) -> RenderableType:
    lines = [Text("sluice top", style="bold"), Text()]
    for keys, what in KEYS:
        text = Text(f"  {keys:8}", style="bold")
        text.append(what, style="not bold")
        lines.append(text)
    lines += [
        Text(),
        Text("RATE is per second over the quota's windows; DELAY is the remaining throttle time."),
    ]
    for line in lines:
        line.truncate(width, overflow="ellipsis")
    return Group(*lines[:height])


def _line(words: str, style: str, width: int) -> Text:
    text = Text(printable(words), style=style)
    text.truncate(width, overflow="ellipsis")
    return text
