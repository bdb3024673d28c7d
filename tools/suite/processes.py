"""Brokers as processes: started by a command, and their CPU time."""

import shlex
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from os import sysconf
from pathlib import Path

SLUICE = "{python} -m sluice serve --port {port} --admin-port 0 --override group.initial.rebalance.delay.ms=0"
_READY_S = 60.0
_POLL_S = 0.01
_TICKS = sysconf("SC_CLK_TCK")


class NotReadyError(Exception):
    """A broker has ended, or accepts no connections."""


@contextmanager
def running(command: str) -> Iterator[tuple[str, int]]:
    """Run a broker; yield its bootstrap address and its pid.

    Args:
        command: Its words. `{port}` and `{dir}` are filled in, unless it prints `BOOTSTRAP HOST:PORT`.
    """
    with tempfile.TemporaryDirectory(prefix="suite-") as folder:
        port = _free_port()
        words = [word.format(port=port, dir=folder, python=sys.executable) for word in shlex.split(command)]
        out = Path(folder) / "stdout"
        with out.open("wb") as stdout:
            process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.DEVNULL)
        try:
            yield _wait_until_ready(process, out, port), process.pid
        finally:
            process.terminate()
            process.communicate()


def _free_port() -> int:
    """Return a free port; the next one is free, too, for Kafka's controller."""
    while True:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port: int = listener.getsockname()[1]
            try:
                socket.create_server(("127.0.0.1", port + 1)).close()
            except OSError:
                continue
        return port


def _wait_until_ready(process: "subprocess.Popen[bytes]", out: Path, port: int) -> str:
    end = time.monotonic() + _READY_S
    while time.monotonic() < end and process.poll() is None:
        for line in out.read_text().splitlines():
            if line.startswith("BOOTSTRAP "):
                return line.split()[1]
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(_POLL_S)
        else:
            return f"127.0.0.1:{port}"
    raise NotReadyError(f"not ready: {process.args!r}")


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
