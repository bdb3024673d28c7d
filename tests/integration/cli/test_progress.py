"""The progress bar on a pseudo-terminal."""

import os
import pty
import subprocess
import sys

PROGRAM = """
from sluice.cli.progress import progress
with progress() as report:
    report("events", 5, 10)
    report("clients", 20, 20)
"""


def test_terminal_shows_a_bar_that_is_erased_at_the_end() -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], stderr=theirs, stdout=subprocess.PIPE, env=environment, check=True
    )
    shown = os.read(ours, 65536).decode()
    os.close(ours)
    os.close(theirs)
    assert done.stdout == b"", "stdout is reserved for programs"
    assert "clients" in shown
    assert "20/20" in shown
    assert shown.endswith(("\x1b[2K", "\x1b[1A\x1b[2K"))
