"""The progress bar on a pseudo-terminal."""

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress

PROGRAM = """
from sluice.cli.progress import progress
with progress() as report:
    report("events", 5, 10)
    report("clients", 20, 20)
"""


def test_terminal_shows_a_bar_that_is_erased_at_the_end() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stderr=theirs, stdout=subprocess.PIPE, env=environment) as process:
        os.close(theirs)
        shown = b"".join(_chunks(ours)).decode()
        assert process.communicate()[0] == b"", "stdout is reserved for programs"
    os.close(ours)
    assert process.returncode == 0
    assert "clients" in shown
    assert "20/20" in shown
    assert shown.endswith(("\x1b[2K", "\x1b[1A\x1b[2K"))


def _chunks(terminal: int) -> Iterator[bytes]:
    """Yield all output: a busy machine draws the bar more often than one read returns."""
    with suppress(OSError):  # EIO, the end on Linux
        while chunk := os.read(terminal, 65536):
            yield chunk
