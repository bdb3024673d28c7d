r"""Runner of the console commands of a documentation page, which compares their output with the page.

The fenced `console` blocks of a page are one session, in the order of the page, in one shell and one empty folder:

    $ sluice serve --port 9092 &        `$ ` starts a command; a final `&` runs it in the background. The next command
    ready {"bootstrap": ...}            waits until `sluice serve` is ready
    $ python - <<'EOF'                  a command continues to the end of a here-document, after a `\\`, and on lines
    print("a")                          that start with `> `
    EOF
    a                                   the expected output, stderr included; `...` matches anything

A command that fails must show some output besides `...`, or be followed by `$ echo $?`. Ports 9092, 9093, 9094, 19093
and 9644 are replaced by free ports, also for a `sluice serve` or `sluice proxy` without ports. The shell is bash, with
`kill %1`, `wait` and `export`. It leads a process group, which is killed at the end of the page.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from time import monotonic, sleep
from types import TracebackType

import pytest

from tests.support import skips
from tests.support.broker_process import CLEAN_ENVIRONMENT, FAST_PYTEST, with_http_stack
from tests.support.ports import free_ports

# These end pages that hang, also on a busy machine.
COMMAND_TIMEOUT_S = 120
_STARTED_WITHIN_S = 120
_ENDED_WITHIN_S = 30
_BLOCK = re.compile(r"^(?P<indent> *)```console\n(?P<body>.*?)^ *```$", re.MULTILINE | re.DOTALL)
_HERE_DOCUMENT = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_PROXY_PORT = "19093"  # of broker 1
_DOCUMENTED_PORTS = ("9092", "9093", "9094", _PROXY_PORT, "9644")
_SERVE = re.compile(r"\bsluice serve\b")
_PROXY = re.compile(r"\bsluice proxy\b")
_STARTS = re.compile(rf"{_SERVE.pattern}|{_PROXY.pattern}")
# The shell of the pages, and the commands of pages that a minimal image may lack.
TOOLS = ("bash", "grep", "sed")
IS_MISSING_A_TOOL = not all(map(shutil.which, TOOLS))
TOOLS_ARE_MISSING = skips.program(f"one of {', '.join(TOOLS)}", f"apt-get install {' '.join(TOOLS)}")
# The shell reads to the end of its input and kills the group also if this process is killed. A trap of the shell is no
# alternative: jobs that are killed before their exec would run it too.
_SHELL = "bash --noprofile --norc; kill -KILL 0"
_CURL = Path(__file__).with_name("curl.py")
_READY = re.compile(r'^ready \{.*"admin": "([^"]+)".*\n', re.MULTILINE)


@dataclass(frozen=True)
class Command:
    """One command of a page, its expected output, and its line in the page."""

    line: int
    text: str
    expected: str


class PageError(AssertionError):
    """A command of a page that fails or prints something else."""


def commands(page: str) -> list[Command]:
    """Return the commands of a page's console blocks. Raise PageError for output without a command."""
    found: list[Command] = []
    for block in _BLOCK.finditer(page):
        first_line = page.count("\n", 0, block.start()) + 2
        indent = len(block["indent"])
        found += _block_commands([line[indent:] for line in block["body"].splitlines()], first_line)
    return found


def _block_commands(lines: list[str], first_line: int) -> Iterator[Command]:
    position = 0
    while position < len(lines):
        start = position
        if not lines[start].startswith("$ "):
            raise PageError(f"line {first_line + start}: a console block must start with `$ `, got {lines[start]!r}")
        command = [lines[start][2:]]
        position += 1
        here_document = _HERE_DOCUMENT.search(command[0])
        while position < len(lines):
            line = lines[position]
            if line.startswith("> "):
                line = line[2:]
            elif not here_document and not command[-1].endswith("\\"):
                break
            command.append(line)
            position += 1
            if here_document and line == here_document[2]:
                here_document = None
        output_start = position
        while position < len(lines) and not lines[position].startswith("$ "):
            position += 1
        yield Command(first_line + start, "\n".join(command), "\n".join(lines[output_start:position]))


def matches(expected: str, printed: str) -> bool:
    """Return whether `printed` matches `expected`: `...` matches anything, blanks at the ends of lines are ignored."""
    pattern = ".*".join(re.escape(part) for part in _stripped(expected).split("..."))
    return re.fullmatch(pattern, _stripped(printed), re.DOTALL) is not None


def _stripped(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.splitlines()).strip("\n")


def run_page(page: str, folder: Path, timeout_s: float = COMMAND_TIMEOUT_S) -> int:
    """Run all commands of `page` in `folder`, and return their number. Raise PageError at the first that fails."""
    todo = commands(page)
    if todo:
        ports = dict(zip(_DOCUMENTED_PORTS, map(str, free_ports(len(_DOCUMENTED_PORTS))), strict=True))
        with Session(folder, timeout_s) as session:
            for command, following in pairwise([*todo, None]):
                assert command is not None
                shown = command.expected.replace("...", "").strip()
                may_fail = bool(shown) or (following is not None and following.text == "echo $?")
                session.run(_with_ports(command, ports), may_fail=may_fail)
    return len(todo)


def _with_ports(command: Command, ports: Mapping[str, str]) -> Command:
    def replaced(text: str) -> str:
        return re.sub(rf"\b({'|'.join(ports)})\b", lambda match: ports[match[0]], text)

    text = replaced(command.text)
    if "listeners" not in text and "--config" not in text and "--port" not in text:
        text = _SERVE.sub(rf"\g<0> --port {ports['9092']}", text)
        text = _PROXY.sub(rf"\g<0> --port {int(ports[_PROXY_PORT]) - 1}", text)
    if "--admin-port" not in text:
        text = _STARTS.sub(rf"\g<0> --admin-port {ports['9644']}", text)
    return Command(command.line, text, replaced(command.expected))


def _own_curl(folder: Path) -> Path:
    """Write a `curl` into a new folder below `folder`, for machines without curl."""
    tools = folder / "tools"
    tools.mkdir()
    command = tools / "curl"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P "{_CURL}" "$@"\n')
    command.chmod(0o755)  # to be run
    return tools


class Session:
    """One shell, and all processes that it starts."""

    def __init__(self, folder: Path, timeout_s: float) -> None:
        self._transcripts = folder / ".console"  # output of the commands
        self._timeout_s = timeout_s
        self._number = 0
        if IS_MISSING_A_TOOL:
            pytest.skip(TOOLS_ARE_MISSING)
        self._transcripts.mkdir(parents=True)
        folders = [str(Path(sys.executable).parent), os.environ["PATH"]]
        if shutil.which("curl") is None:
            folders.append(str(_own_curl(self._transcripts)))
        tools = {"PATH": os.pathsep.join(folders)}
        plain = {"TERM": "dumb", "COLUMNS": "120", "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"}
        self._shell = subprocess.Popen(
            ["bash", "-c", _SHELL],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=folder,
            env=CLEAN_ENVIRONMENT | FAST_PYTEST | tools | plain,
            start_new_session=True,
        )

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.killpg(self._shell.pid, signal.SIGKILL)
        self._shell.communicate()
        end = monotonic() + _ENDED_WITHIN_S
        with suppress(ProcessLookupError):  # the group is empty
            while monotonic() < end:
                os.killpg(self._shell.pid, 0)
                sleep(0.01)

    def run(self, command: Command, *, may_fail: bool) -> None:
        """Run one command. Raise PageError, with the output and the logs, if it fails or prints something else."""
        self._number += 1
        output = self._transcripts / f"{self._number}.out"
        text = command.text
        stays = text.endswith(" &")
        if stays:
            text = f"{text[:-2]} >{output} 2>{self._transcripts / f'{self._number}.err'} &"
        script = self._transcripts / f"{self._number}.sh"
        script.write_text(f"{text}\n")
        # `$?` is that of the previous command.
        redirection = "" if stays else f">{output} 2>&1"
        status = self._execute(f"(exit $status); . {script} {redirection} </dev/null; status=$?; echo $status\n")
        if status is None:
            raise self._failure(command, output, f"still running after {self._timeout_s} s")
        if stays and _STARTS.search(command.text):
            self._wait_until_ready(command, output)
        if not (stays and not command.expected) and not matches(command.expected, self._printed(output)):
            raise self._failure(command, output, f"exit code {status}")
        if status != 0 and not may_fail:
            raise self._failure(command, output, f"exit code {status}")

    def _execute(self, line: str) -> int | None:
        """Run a line in the shell. Return the exit code, or None after a timeout or without a shell."""
        assert self._shell.stdout is not None
        self._write(line)
        with DefaultSelector() as selector:  # select() supports no descriptors above 1,023
            selector.register(self._shell.stdout, EVENT_READ)
            if not selector.select(self._timeout_s):
                return None
        status = self._shell.stdout.readline()
        return int(status) if status else None

    def _write(self, line: str) -> None:
        assert self._shell.stdin is not None
        self._shell.stdin.write(line.encode())
        self._shell.stdin.flush()

    def _wait_until_ready(self, command: Command, output: Path) -> None:
        end = monotonic() + _STARTED_WITHIN_S
        while not (ready := _READY.search(self._printed(output))):
            if monotonic() > end or self._execute("kill -0 $! 2>/dev/null; echo $?\n") != 0:
                raise self._failure(command, output, "not ready")
            sleep(0.02)
        if ready[1].startswith("http://127."):
            with_http_stack(ready[1])

    def _printed(self, output: Path) -> str:
        return output.read_text(errors="replace") if output.exists() else ""

    def _failure(self, command: Command, output: Path, what: str) -> PageError:
        logs = [path.read_text(errors="replace") for path in sorted(self._transcripts.glob("*.err"))]
        parts = [
            f"line {command.line}: {what}",
            f"$ {command.text}",
            f"expected:\n{command.expected}",
            f"printed:\n{self._printed(output)}",
        ]
        parts += [f"log of a background process:\n{log}" for log in logs if log]
        return PageError("\n\n".join(parts))
