"""tests/support/console.py: parsing, matching of output, and process cleanup."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.console import IS_MISSING_A_TOOL, TOOLS_ARE_MISSING, Command, PageError, commands, matches, run_page

ROOT = Path(__file__).parents[2]
needs_tools = pytest.mark.skipif(IS_MISSING_A_TOOL, reason=TOOLS_ARE_MISSING)


def page(*lines: str) -> str:
    return "\n".join(["# A page", "", "```console", *lines, "```", "", "The end.", ""])


CONTINUED = {
    "here-document": (["$ cat <<'EOF'", "a", "EOF", "a"], Command(4, "cat <<'EOF'\na\nEOF", "a")),
    "backslash": (["$ echo \\", "  a", "a"], Command(4, "echo \\\n  a", "a")),
    "continuation prompt": (
        ["$ for a in b", "> do echo $a", "> done", "b"],
        Command(4, "for a in b\ndo echo $a\ndone", "b"),
    ),
}


@pytest.mark.parametrize(("lines", "command"), CONTINUED.values(), ids=CONTINUED)
def test_command_continues_after(lines: list[str], command: Command) -> None:
    assert commands(page(*lines)) == [command]


def test_output_without_a_command_is_rejected() -> None:
    with pytest.raises(PageError, match="line 4: a console block must start with"):
        commands(page("a"))


OUTPUTS = {
    "same except for blanks at the ends of lines": ("a\nb", "a  \nb\n", True),
    "three dots match anything": ("a...c", "a\nb\nc", True),
    "extra output after the last line": ("...\nb", "a\nb\nc", False),
    "output that is not shown": ("", "a", False),
    "single dots are literal": ("a.b", "a+b", False),
}


@pytest.mark.parametrize(("expected", "printed", "is_match"), OUTPUTS.values(), ids=OUTPUTS)
def test_output_matches(expected: str, printed: str, is_match: bool) -> None:
    assert matches(expected, printed) is is_match


FAILURES = {
    "output differs": (["$ echo a", "b"], "line 4: exit code 0\n\n$ echo a\n\nexpected:\nb\n\nprinted:\na\n"),
    "command fails without shown output": (["$ false"], "line 4: exit code 1\n\n$ false"),
    "command fails with any shown output": (["$ echo a; false", "..."], "line 4: exit code 1"),
    "syntax error": (["$ echo (", "("], "printed:\n.*syntax error"),
    "command ends the shell": (["$ exit 3"], "line 4: still running"),
    "command takes too long": (["$ sleep 60"], "line 4: still running after 0.3 s\n\n$ sleep 60"),
}


@pytest.mark.parametrize(("lines", "message"), FAILURES.values(), ids=FAILURES)
def test_page_fails_where(lines: list[str], message: str, tmp_path: Path) -> None:
    literal = message if ".*" in message else re.escape(message)
    timeout_s = 0.3 if "still running" in message else 60  # a shell may take a second on a busy machine
    with pytest.raises(PageError, match=literal):
        run_page(page(*lines), tmp_path, timeout_s=timeout_s)


@needs_tools
def test_no_process_remains_if_the_runner_is_killed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "alive")
    lines = [
        "$ sh -c 'exec 3>alive; touch started; exec sleep 600' &",
        "$ until [ -e started ]; do sleep 0.01; done",
        "$ kill -KILL $RUNNER",
    ]
    program = (
        f"from tests.support.console import *; run_page({page(*lines)!r}.replace('$RUNNER', str(os.getpid())), Path())"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=environment) as runner:
        assert (tmp_path / "alive").read_bytes() == b"", "the process must be gone"
    assert runner.returncode == -signal.SIGKILL
