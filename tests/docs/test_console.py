"""tests/support/console.py: parsing, matching of output, and process cleanup."""

import os
import re
import shutil
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


def test_only_console_blocks_are_commands() -> None:
    assert commands("```\n$ a\n```\n\n```console\n$ b\n$ c\nd\ne\n```\n\n```python\n$ f\n```\n") == [
        Command(6, "b", ""),
        Command(7, "c", "d\ne"),
    ]


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


def test_block_in_a_list_is_parsed_without_its_indent() -> None:
    assert commands("- so:\n  ```console\n  $ echo a\n  a\n  ```\n") == [Command(3, "echo a", "a")]


def test_output_without_a_command_is_rejected() -> None:
    with pytest.raises(PageError, match="line 4: a console block must start with"):
        commands(page("a"))


@pytest.mark.parametrize(
    ("expected", "printed", "is_match"),
    [
        pytest.param("a\nb", "a  \nb\n", True, id="same except for blanks at the ends of lines"),
        pytest.param("a...c", "a\nb\nc", True, id="three dots match anything"),
        pytest.param("...\nb", "a\nb\nc", False, id="extra output after the last line"),
        pytest.param("", "a", False, id="output that is not shown"),
        pytest.param("a.b", "a+b", False, id="single dots are literal"),
    ],
)
def test_output_matches(expected: str, printed: str, is_match: bool) -> None:
    assert matches(expected, printed) is is_match


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(["$ export A=b", "$ echo $A", "b"], id="variables persist"),
        pytest.param(["$ echo a > file", "$ cat file", "a"], id="files persist"),
        pytest.param(["$ ls"], id="empty folder at first"),
        pytest.param(["$ echo a >&2", "a"], id="stderr is output"),
        pytest.param(["$ (echo wrong; exit 2)", "wrong", "$ echo $?", "2"], id="shown failure"),
        pytest.param(["$ sleep 60 &", "$ kill %1", "$ wait $!", "...", "$ echo $?", "143"], id="jobs of the shell"),
        pytest.param(["$ python -c 'import sluice; print(1)'", "1"], id="python has sluice"),
    ],
)
def test_page_passes_where(lines: list[str], tmp_path: Path) -> None:
    assert run_page(page(*lines), tmp_path) == sum(line.startswith("$ ") for line in lines)


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


def test_session_waits_for_a_broker_and_stops_it_at_the_end(tmp_path: Path) -> None:
    lines = [
        "$ sluice serve --override quota.producer.default=1M &",
        'ready {"bootstrap": "127.0.0.1:9092", ..., "admin": "http://127.0.0.1:9644", "pid": ...}',
        "$ sluice healthcheck --admin http://127.0.0.1:9644",
        "...",
        "$ echo $! > pid",
    ]
    run_page(page(*lines), tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


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


def test_broker_that_does_not_start_shows_its_log(tmp_path: Path) -> None:
    with pytest.raises(PageError, match=r"(?s)not ready.*no\.such\.property: no such property"):
        run_page(page("$ sluice serve --override no.such.property=1 &"), tmp_path)


@needs_tools
def test_curl_is_provided_if_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "bash").symlink_to(bash)
    monkeypatch.setenv("PATH", str(tmp_path / "tools"))
    lines = [
        "$ sluice serve &",
        "ready ...",
        "$ curl -s http://127.0.0.1:9644/healthz",
        '{"status":"ok"}',
        "$ curl -s --json '{}' http://127.0.0.1:9644/api/v1/brokers/4/stop",
        '{"error":"there is no broker 4; expected one of 1"}',
        "$ curl -s -X POST -H 'X-Sluice-Request: 1' http://127.0.0.1:9644/api/v1/brokers/1/start",
        '{"error":"broker 1 is running"}',
    ]
    assert run_page(page(*lines), tmp_path / "page") == 4
