"""The interactive screen of `sluice top`: draws messages and acts on keys."""

import os
import select
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from rich.console import Console
from rich.live import Live

from sluice.cli.admin_client import AdminClient
from sluice.cli.faults.arguments import rule_of
from sluice.cli.faults.text import FaultList, FaultShown
from sluice.config.value_types import parse_rate
from sluice.errors import SluiceError
from sluice.text.error_text import expected

from .feed import SORTS, Feed, Source, View
from .screen import Display, Prompt, rows, screen
from .state import State

# The maximum delay until a resize of the terminal is noticed.
_TICK_S = 0.25
_UP, _DOWN, _ENTER, _ESCAPE, _DELETE = "up", "down", "enter", "escape", "delete"
_SEQUENCES = {"\x1b[A": _UP, "\x1b[B": _DOWN, "\x1bOA": _UP, "\x1bOB": _DOWN}
_KEYS = {"\r": _ENTER, "\n": _ENTER, "\x1b": _ESCAPE, "\x7f": _DELETE, "\x08": _DELETE}
_QUOTAS = {
    "Produce": "producer_byte_rate",
    "Fetch": "consumer_byte_rate",
    "Request": "request_percentage",
    "ControllerMutation": "controller_mutation_rate",
}
_BYTES = ("producer_byte_rate", "consumer_byte_rate")


class Top:
    def __init__(self, client: AdminClient, source: Source, display: Display) -> None:
        self.display = display
        self.state = State()
        self._client = client
        self._readable, self._writable = os.pipe()
        os.set_blocking(self._writable, False)
        self._feed = Feed(source, self._wake)
        self._frozen: State | None = None
        self._enter: Callable[[str], None] = lambda text: None
        self._is_over = False
        self._does: dict[str, Callable[[], None]] = {
            _UP: lambda: self._choose(-1),
            _DOWN: lambda: self._choose(1),
            "s": self._sort,
            "/": self._prompt_filter,
            "u": self._prompt_quota,
            "f": self._prompt_fault,
            "x": self._prompt_removal,
            "p": self._pause,
            "h": self._help,
            "?": self._help,
            "q": self._quit,
        }

    def run(self, console: Console) -> None:
        self._watch()
        with _keys(), Live(console=console, screen=True, auto_refresh=False) as live:
            try:
                while not self._is_over:
                    live.update(screen(self._shown, self.display, console.width, console.height), refresh=True)
                    self._wait()
            except KeyboardInterrupt:
                pass
            finally:
                self._feed.stop()
                os.close(self._readable)

    def _wait(self) -> None:
        ready, _, _ = select.select([sys.stdin, self._readable], [], [], _TICK_S)
        if self._readable in ready:
            os.read(self._readable, 4096)
            self._take()
        if sys.stdin in ready:
            typed = os.read(sys.stdin.fileno(), 1024).decode(errors="replace")
            if not typed:
                self._is_over = True
            for key in parsed(typed):
                self.press(key)

    def _take(self) -> None:
        for news in self._feed.take():
            if isinstance(news, SluiceError):
                self.display.problem = str(news)
            else:
                self.display.problem = ""
                self.state.take(news)

    def _wake(self) -> None:
        with suppress(OSError):  # already awake, or closed
            os.write(self._writable, b".")

    @property
    def _shown(self) -> State:
        return self._frozen or self.state

    # -- keys ----------------------------------------------------------------------------------------------------------

    def press(self, key: str) -> None:
        display = self.display
        display.message = ""
        if display.help:
            display.help = False
        elif display.prompt is not None:
            self._type(display.prompt, key)
        elif key in self._does:
            self._does[key]()

    def _type(self, prompt: Prompt, key: str) -> None:
        if key == _ENTER:
            self.display.prompt = None
            try:
                self._enter(prompt.text.strip())
            except SluiceError as error:
                self.display.message = str(error)
        elif key == _ESCAPE:
            self.display.prompt = None
        elif key == _DELETE:
            prompt.text = prompt.text[:-1]
        elif len(key) == 1 and key.isprintable():
            prompt.text += key

    def _choose(self, by: int) -> None:
        self.display.chosen = max(0, min(self.display.chosen + by, len(rows(self._shown)) - 1))

    def _sort(self) -> None:
        self.display.sort = SORTS[(SORTS.index(self.display.sort) + 1) % len(SORTS)]
        self._watch()

    def _pause(self) -> None:
        self.display.paused = not self.display.paused
        self._frozen = None
        if self.display.paused:
            self._frozen, self.state = self.state, State()
            self._watch()  # a restarted stream fills the new state

    def _help(self) -> None:
        self.display.help = True

    def _quit(self) -> None:
        self._is_over = True

    def _prompt(self, label: str, text: str, enter: Callable[[str], None]) -> None:
        self.display.prompt, self._enter = Prompt(label, text), enter

    def _prompt_filter(self) -> None:
        self._prompt("filter", self.display.search, self._filter)

    def _filter(self, text: str) -> None:
        self.display.search, self.display.chosen = text, 0
        self._watch()

    def _prompt_quota(self) -> None:
        found = rows(self._shown)
        if not found:
            self.display.message = "no clients yet"
            return
        client, meter = found[min(self.display.chosen, len(found) - 1)]
        key = _QUOTAS[meter.kind if meter is not None else "Produce"]
        bound = "" if meter is None or meter.bound is None else f"{meter.bound:.10g}"
        self._prompt(
            f"{key} of client {client.client_id}", bound, lambda text: self._set_quota(client.client_id, key, text)
        )

    def _set_quota(self, client_id: str, key: str, text: str) -> None:
        value = _number(key, text) if text else None
        self._client.put("/api/v1/quotas", {"entity": {"client-id": client_id}, "quotas": {key: value}}, dict)
        self.display.message = f"client {client_id}: {key} " + ("removed" if value is None else f"= {value:.10g}")

    def _prompt_fault(self) -> None:
        self._prompt("add a fault", "action=", self._add_fault)

    def _add_fault(self, text: str) -> None:
        added = self._client.post("/api/v1/faults", rule_of([text]), FaultList)
        self.display.message = f"added {', '.join(fault.id for fault in added.faults)}"

    def _prompt_removal(self) -> None:
        faults = self._shown.faults
        if not faults:
            self.display.message = "no fault rules"
            return
        self._prompt("remove a fault, or all", faults[0].id, self._remove_fault)

    def _remove_fault(self, text: str) -> None:
        if text == "all":
            self._client.delete("/api/v1/faults", FaultList)
        else:
            self._client.delete(f"/api/v1/faults/{text}", FaultShown)
        self.display.message = f"removed {text}"

    def _watch(self) -> None:
        self._feed.watch(View(self.display.search, self.display.sort))


def parsed(typed: str) -> Iterator[str]:
    while typed:
        sequence = next((each for each in _SEQUENCES if typed.startswith(each)), None)
        if sequence is not None:
            yield _SEQUENCES[sequence]
            typed = typed[len(sequence) :]
        else:
            yield _KEYS.get(typed[0], typed[0])
            typed = typed[1:]


def _number(key: str, text: str) -> float:
    try:
        return parse_rate(text) if key in _BYTES else float(text)
    except ValueError:
        accepted = "bytes per second, such as 2M, 512Ki or 1e6" if key in _BYTES else "a number"
        raise SluiceError(f"{key}: {expected(accepted, text)}") from None


@contextmanager
def _keys() -> Iterator[None]:
    before = termios.tcgetattr(sys.stdin)
    tty.setcbreak(sys.stdin)
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
