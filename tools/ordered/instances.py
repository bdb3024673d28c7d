"""Instances of an application, each a process of the operating system."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Condition, Thread

from sluice.errors import WaitTimeoutError
from tools.clients.built import BUILT

_HERE = Path(__file__).parent
_JARS = BUILT / "java-4" / "lib" / "*"
_WITHIN_S = 30.0


class Instance:
    """A running instance; `lines` are those that it has printed."""

    def __init__(self, command: Sequence[str | Path]) -> None:
        self.lines: list[str] = []
        self._changed = Condition()
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                self.lines.append(line.rstrip())
                self._changed.notify_all()

    def wait_for(self, line: str) -> None:
        """Wait until it has printed a line. Raises WaitTimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: line in self.lines, _WITHIN_S):
                raise WaitTimeoutError(f"after {_WITHIN_S:g} s: no line {line}, got {self.lines}")

    def wait(self) -> None:
        """Wait until it ends."""
        self._process.wait(_WITHIN_S)

    def stop(self) -> None:
        """Stop it as an operator does, by SIGTERM."""
        self._process.terminate()
        self.wait()

    def kill(self) -> None:
        self._process.kill()
        self.wait()


def compile_java(folder: Path) -> None:
    """Compile Shop.java into a folder; needs the build of the client java-4."""
    subprocess.run(["javac", "-cp", str(_JARS), "-d", folder, _HERE / "Shop.java"], check=True)


def command_of(client: str, classes: Path) -> Sequence[str | Path]:
    """Return the command of the application with a client: librdkafka or java."""
    if client == "librdkafka":
        return [sys.executable, _HERE / "shop.py"]
    return ["java", "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{_JARS}", "Shop"]
