"""CPU time and memory of the processes that this one starts, from /proc."""

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread
from typing import NamedTuple

_INTERVAL_S = 0.2
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


class Used(NamedTuple):
    """What a process used: CPU time in seconds, and its highest resident memory in bytes."""

    name: str
    cpu_s: float
    most_bytes: int


class Descendants:
    """Samples all descendants of this process while it is open; `used` has one row per process."""

    def __init__(self) -> None:
        self.used: dict[int, Used] = {}
        self._is_over = Event()
        self._thread = Thread(target=self._poll, daemon=True)

    def __enter__(self) -> "Descendants":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def cpu_s(self) -> float:
        """Return the CPU time so far."""
        self._sample()
        return sum(each.cpu_s for each in self.used.values())

    def most_bytes(self, name: str) -> int:
        """Return the highest resident memory of one process whose name begins so."""
        return max((each.most_bytes for each in self.used.values() if each.name.startswith(name)), default=0)

    def _poll(self) -> None:
        while not self._is_over.wait(_INTERVAL_S):
            self._sample()

    def _sample(self) -> None:
        parents = dict(_stats())
        for pid, (name, _, cpu_s, rss) in parents.items():
            if self._descends(pid, parents):
                before = self.used.get(pid, Used(name, 0, 0))
                self.used[pid] = Used(name, max(cpu_s, before.cpu_s), max(rss, before.most_bytes))

    def _descends(self, pid: int, stats: dict[int, tuple[str, int, float, int]]) -> bool:
        own = os.getpid()
        while pid in stats and pid != own:
            pid = stats[pid][1]
            if pid == own:
                return True
        return False


def _stats() -> Iterator[tuple[int, tuple[str, int, float, int]]]:
    """Yield each process's id, and its name, parent, CPU time and resident memory."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            begin, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue  # it ended
        fields = rest.split()
        pid, name = begin.split("(", 1)
        yield int(pid), (name, int(fields[1]), (int(fields[11]) + int(fields[12])) / _TICKS, int(fields[21]) * _PAGE)
