"""The screen fits the terminal for any content and any names."""

from io import StringIO

import pytest
from rich.console import Console

from sluice.broker.admin.resources.faults import FaultShown
from sluice.broker.faults.actions.no_response import Close
from sluice.broker.faults.rule import Rule
from sluice.cli.top.feed import State
from sluice.cli.top.screen import Display, screen
from sluice.web.brokers import BrokerNow
from sluice.web.client_row import ClientSeen
from sluice.web.message import ClientsSent, Message
from sluice.web.meter import MeterSeen
from sluice.web.panels import Faults
from sluice.web.snapshots import ClusterSeen

NOW_MS = 1_700_000_000_000


def meter(kind: str, rate: float, bound: float | None, held_ms: int = 0) -> MeterSeen:
    return MeterSeen(kind, rate, bound, held_ms, NOW_MS + held_ms if held_ms else 0, held_ms * 3, 1, None, "c")


def state(clients: int = 3, brokers: int = 1, faults: int = 0, name: str = "client") -> State:
    found, rule = State(), Rule(action=Close())
    made = [
        ClientSeen(number, "ANONYMOUS" if number % 2 else "alice", f"{name}-{number}", "", 1, 0, meters, [])
        for number, meters in ((each, [meter("Produce", 5e4 * each, 1e5, 800 * each)]) for each in range(clients))
    ]
    found.take(
        Message(
            look=10,
            at_ms=NOW_MS,
            cluster=ClusterSeen("id", "0.1.0", "by-version", "127.0.0.1:9092", True, 0, 240),
            brokers=[
                BrokerNow(number + 1, "running", False, [], {}, 1, 2, 1, 5000, 2_000_000, 100)
                for number in range(brokers)
            ],
            clients=ClientsSent(clients, clients, [one.id for one in made], made, {"0": [(9, 500, 0), (10, 0, 1)]}),
            faults=Faults(
                [FaultShown(f"fault-{n}", "close", "in force", 3, 2, 0, "", rule) for n in range(faults)], faults
            ),
        )
    )
    return found


def drawn(found: State, look: Display, width: int, height: int) -> list[str]:
    console = Console(file=StringIO(), width=width, height=height, force_terminal=False)
    with console.capture() as capture:
        console.print(screen(found, look, width, height))
    return capture.get().splitlines()


SIZES = [(80, 24), (120, 40), (60, 12), (200, 24)]
STATES = {
    "a few clients": state(),
    "nobody": state(clients=0),
    "many of each": state(clients=100, brokers=20, faults=30),
    "long names": state(name="a-client-with-a-name-that-is-much-longer-than-its-column-of-the-table" * 3),
    "hostile names": state(name="\x1b[2J\n[red]"),
    "wide names": state(name="数据" * 20),
    "nothing yet": State(),
}
LOOKS = {
    "plain": Display(),
    "with a filter": Display(search="x" * 300),
    "with a problem": Display(problem="http://127.0.0.1:9644: Connection refused" * 5),
}


@pytest.mark.parametrize("width", [80, 100])
def test_screen_has_all_parts_and_fits_the_width(width: int) -> None:
    console = Console(file=StringIO(), width=width, force_terminal=False, soft_wrap=True)
    with console.capture() as capture:
        console.print(screen(state(clients=100, brokers=20), Display(), width))
    lines = capture.get().splitlines()
    assert max(map(len, lines)) == width, "\n".join(lines)
    assert sum(line.startswith("client-") for line in lines) == 100


@pytest.mark.parametrize("size", SIZES, ids=[f"{width}x{height}" for width, height in SIZES])
@pytest.mark.parametrize("found", STATES.values(), ids=STATES)
@pytest.mark.parametrize("look", LOOKS.values(), ids=LOOKS)
def test_screen_fits_any_size(size: tuple[int, int], found: State, look: Display) -> None:
    width, height = size
    lines = drawn(found, look, width, height)
    assert len(lines) <= height, "\n".join(lines)
    assert max(map(len, lines)) <= width, "\n".join(lines)
    assert "\x1b" not in "".join(lines)


def test_row_has_the_client_and_its_quota() -> None:
    lines = drawn(state(), Display(), 100, 24)
    (row,) = [line for line in lines if line.startswith("client-1 1")]
    assert row.split()[2:7] == ["Produce", "50k", "100k", "50%", "━━━━━─────"]
    assert "800 ms" in row
    assert any(line.startswith("client-2 of alice 1") and "━━━━━━━━━━" in line for line in lines)
