"""A program on a pseudo-terminal, whose screen a test reads."""

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

_WITHIN_S = 240.0  # ends tests that hang


class Terminal:
    """Runs a command; `screen` is its current display."""

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
        """Return the lines without trailing blanks."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip()

    def interrupt(self) -> None:
        """Send SIGINT for Control-C: no process has this pseudo-terminal as its controlling terminal."""
        self._process.send_signal(signal.SIGINT)

    def resize(self, columns: int, lines: int) -> None:
        self._screen.resize(lines, columns)
        self._set_size(columns, lines)
        self._process.send_signal(signal.SIGWINCH)

    def wait_for(self, seen: str | Callable[[str], object]) -> str:
        """Return the screen when it has this text or satisfies the condition. Raise AssertionError after a timeout."""
        deadline = monotonic() + _WITHIN_S
        while not (seen in self.screen if isinstance(seen, str) else seen(self.screen)):
            assert self._has_output(deadline - monotonic()), f"{seen!r} does not come; the screen is\n{self.screen}"
            self._read()
        return self.screen

    def wait_for_end(self) -> int:
        """Wait for the program and return its exit code."""
        deadline = monotonic() + _WITHIN_S
        while self._process.poll() is None and monotonic() < deadline:
            if self._has_output(0.05):
                self._read()
        return self._process.wait(0)

    def _has_output(self, within_s: float) -> bool:
        poll = select.poll()  # select() knows no descriptor above 1023, and other tests open more
        poll.register(self._ours, select.POLLIN)
        return bool(poll.poll(max(0, within_s) * 1000))

    def _read(self) -> None:
        try:
            self._stream.feed(os.read(self._ours, 65536))
        except OSError:  # the program has terminated
            self._process.wait(_WITHIN_S)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
