"""Clients in other languages: each driver is a process that reads calls and prints steps as lines of JSON.

It prints its version first: {"version": "..."}. A call is a line {"bootstrap", "verb", "given"}. The driver answers
with a line {"step": {...}} for each step, and {"end": true} or {"failure": "stack trace"}. One process serves many
calls, since some take long to start. `python -m tools.clients.build` builds the clients; without a build, a client is
skipped.
"""

import atexit
import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer

import msgspec

from tests.clients.driver import Given
from tools.clients.built import BUILT, missing

# A call that takes longer hangs; its process is killed, and the next call starts another.
CALL_TIMEOUT_S = 60
LAST_WORDS = 4_000  # bytes of a terminated driver's standard error to report


class Process:
    """A running driver."""

    def __init__(self, command: Sequence[str], directory: Path, timeout_s: float = CALL_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._stderr = TemporaryFile()  # noqa: SIM115  # open as long as the process
        self.process = subprocess.Popen(
            command, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr
        )
        atexit.register(self.process.kill)
        self.version = str(self._line()["version"])

    def _line(self) -> dict[str, object]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            self._stderr.seek(0)
            raise AssertionError(f"the driver terminated: {self._stderr.read()[-LAST_WORDS:].decode(errors='replace')}")
        found = json.loads(line)
        assert isinstance(found, dict), found
        return found

    def run(self, call: Mapping[str, object]) -> list[object]:
        assert self.process.stdin is not None
        timer = Timer(self._timeout_s, self.process.kill)
        timer.start()
        try:
            self.process.stdin.write(json.dumps(call).encode() + b"\n")
            self.process.stdin.flush()
            steps: list[object] = []
            while "end" not in (line := self._line()):
                if "failure" in line:
                    raise AssertionError(f"{line['failure']}\nsteps before: {steps}")
                steps.append(line["step"])
        finally:
            timer.cancel()
        return steps


class External:
    """A client in another language."""

    def __init__(self, name: str, command: Sequence[str], unsupported: Mapping[str, str]) -> None:
        """Create a client that runs `command` in its folder below BUILT."""
        self._name = name
        self._command = command
        self._unsupported = unsupported
        self._process: Process | None = None

    @property
    def name(self) -> str:
        return self._name

    @property
    def unsupported(self) -> Mapping[str, str]:
        return self._unsupported

    @property
    def directory(self) -> Path:
        return BUILT / self._name

    def version(self) -> str:
        return self._running().version

    def missing(self) -> str | None:
        """Return why its build cannot be used; None if it can."""
        return missing(self._name)

    def _running(self) -> Process:
        if self._process is None or self._process.process.poll() is not None:
            self._process = Process(self._command, self.directory)
        return self._process

    def run(self, bootstrap: str, verb: str, given: Given) -> list[object]:
        return self._running().run({"bootstrap": bootstrap, "verb": verb, "given": msgspec.to_builtins(given)})
