"""Counters of the instructions that a process executes in user mode: callgrind, or the processor's own counter."""

import ctypes
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

# Executed in the counted process. Its clocks advance with each reading, so that the same timers run in each
# measurement. The dump of callgrind starts at the call of getppid, which nothing else calls.
_PREPARE = """\
moved = [bytes(size) for size in range(0, 480, 16) for _ in range({moved})]
import itertools, os, signal, sys, time
time.monotonic = itertools.count(1000.0, 1e-5).__next__
time.time_ns = itertools.count(1_700_000_000_000_000_000, 10_000).__next__
signal.signal(signal.SIGUSR1, lambda *_: os.getppid())
from sluice.__main__ import main
main()
"""
# Numbers of the system call perf_event_open.
_SYSTEM_CALLS = {"x86_64": 298, "aarch64": 241}
# callgrind slows Python down 50 times.
_DEADLINE_S = 120.0
_POLL_S = 0.005


class UnavailableError(Exception):
    """No counter works on this machine."""


class Callgrind:
    name = "callgrind"

    def __init__(self, folder: Path) -> None:
        self._out = folder / "callgrind"
        self._dumps = 0

    @staticmethod
    def check() -> None:
        """Raise UnavailableError if valgrind is missing."""
        if shutil.which("valgrind") is None:
            raise UnavailableError("valgrind is missing; install it")

    def start(self, arguments: Sequence[str], environment: dict[str, str], moved: int) -> "subprocess.Popen[str]":
        """Start `sluice` with these arguments, after `moved` objects of each size that CPython's allocator has."""
        valgrind = ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={self._out}", "--dump-before=getppid"]
        return _spawn([*valgrind, sys.executable, "-c", _PREPARE.format(moved=moved), *arguments], environment)

    def lap(self, process: "subprocess.Popen[str]") -> int:
        """Return the instructions since the last lap, or since the start; the process is idle."""
        self._dumps += 1
        process.send_signal(signal.SIGUSR1)
        dump = Path(f"{self._out}.{self._dumps}")
        end = time.monotonic() + _DEADLINE_S
        while time.monotonic() < end:
            lines = dump.read_text().splitlines()[-1:] if dump.exists() else []
            if lines and lines[0].startswith("totals: "):
                dump.unlink()
                return int(lines[0].split()[1])
            time.sleep(_POLL_S)
        raise UnavailableError("callgrind wrote no counts")


class ProcessorCounter:
    """The counter that `perf stat -e instructions:u` shows, read by perf_event_open (Linux)."""

    name = "processor"
    # struct perf_event_attr (linux/perf_event.h): PERF_TYPE_HARDWARE, size, PERF_COUNT_HW_INSTRUCTIONS, and the bits
    # disabled, inherit, exclude_kernel, exclude_hv, enable_on_exec.
    _ATTRIBUTES = struct.pack("<IIQQQQQ64x", 0, 112, 1, 0, 0, 0, 1 | 1 << 1 | 1 << 5 | 1 << 6 | 1 << 12)

    def __init__(self) -> None:
        self._counter = -1
        self._last = 0

    @classmethod
    def check(cls) -> None:
        """Raise UnavailableError if this machine does not have the counter."""
        os.close(cls._open(os.getpid()))

    @classmethod
    def _open(cls, pid: int) -> int:
        number = _SYSTEM_CALLS.get(os.uname().machine)
        if not sys.platform.startswith("linux") or number is None:
            raise UnavailableError("perf_event_open is not known for this system")
        libc = ctypes.CDLL(None, use_errno=True)
        counter: int = libc.syscall(number, ctypes.c_char_p(cls._ATTRIBUTES), pid, -1, -1, ctypes.c_ulong(0))
        if counter < 0:
            raise UnavailableError(f"perf_event_open: {os.strerror(ctypes.get_errno())}; use a machine with a counter")
        return counter

    def start(self, arguments: Sequence[str], environment: dict[str, str], moved: int) -> "subprocess.Popen[str]":
        """Start `sluice` with these arguments, after objects as above; its shell waits for the counter."""
        prepare = _PREPARE.format(moved=moved)
        waiting = ["sh", "-c", 'read _; exec "$@"', "sh", sys.executable, "-c", prepare, *arguments]
        process = _spawn(waiting, environment, stdin=subprocess.PIPE)
        assert process.stdin is not None
        self._counter = self._open(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        return process

    def lap(self, process: "subprocess.Popen[str]") -> int:
        """Return the instructions since the last lap, or since the start; the process is idle."""
        time.sleep(0.05)  # the process may still be on its way from the last response to the selector
        (now,) = struct.unpack("<Q", os.read(self._counter, 8))
        count, self._last = int(now) - self._last, int(now)
        return count


def _spawn(
    command: Sequence[str], environment: dict[str, str], stdin: int = subprocess.DEVNULL
) -> "subprocess.Popen[str]":
    if shutil.which("setarch"):
        command = ["setarch", "-R", *command]  # the same addresses in each run
    return subprocess.Popen(
        command, env=environment, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )


Counter = Callgrind | ProcessorCounter


def best_counter(folder: Path) -> Counter:
    """Return callgrind, or else the processor's counter. Raises UnavailableError."""
    reasons = []
    for kind in (Callgrind, ProcessorCounter):
        try:
            kind.check()
        except UnavailableError as reason:
            reasons.append(str(reason))
        else:
            return Callgrind(folder) if kind is Callgrind else ProcessorCounter()
    raise UnavailableError("; ".join(reasons))
