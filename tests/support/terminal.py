"""A program on a terminal of its own, at which a test looks and types."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Callable, Sequence
from time import monotonic
from types import TracebackType

import pyte

_WITHIN_S = 20.0


class Terminal:
    """Runs a command; `screen` is what it shows."""

    def __init__(self, command: Sequence[str], columns: int = 80, lines: int = 24) -> None:
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._ours, theirs = pty.openpty()
        self._set_size(columns, lines)
        environment = {
            name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "NO_COLOR")
        }
        self._process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        os.close(theirs)

    def __enter__(self) -> "Terminal":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._ours)

    @property
    def screen(self) -> str:
        """The lines, without blanks at their ends."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def press(self, keys: str) -> None:
        """Types."""
        os.write(self._ours, keys.encode())

    def interrupt(self) -> None:
        """Types Control-C; as the terminal is nobody's that controls processes, the signal is sent here."""
        self._process.send_signal(signal.SIGINT)

    def resize(self, columns: int, lines: int) -> None:
        """The user pulls at the window."""
        self._screen.resize(lines, columns)
        self._set_size(columns, lines)
        self._process.send_signal(signal.SIGWINCH)

    def wait_for(self, seen: str | Callable[[str], object]) -> str:
        """The screen, as soon as it has this text, or is right. Raises AssertionError with what it is instead."""
        deadline = monotonic() + _WITHIN_S
        while not (seen in self.screen if isinstance(seen, str) else seen(self.screen)):
            assert self._says_something(deadline - monotonic()), f"{seen!r} does not come; the screen is\n{self.screen}"
            self._read()
        return self.screen

    def wait_for_end(self) -> int:
        """The exit code of the program, which ends."""
        deadline = monotonic() + _WITHIN_S
        while self._process.poll() is None and monotonic() < deadline:
            if self._says_something(0.05):
                self._read()
        return self._process.wait(0)

    def _says_something(self, within_s: float) -> bool:
        looked = select.poll()  # select() knows no descriptor above 1023, and other tests open more
        looked.register(self._ours, select.POLLIN)
        return bool(looked.poll(max(0, within_s) * 1000))

    def _read(self) -> None:
        try:
            self._stream.feed(os.read(self._ours, 65536))
        except OSError:  # the program has ended
            self._process.wait(_WITHIN_S)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
