"""The report of a failed test: the last journal events of its brokers, and the command that repeats it.

Each broker in this process is noted with a weak reference: the traceback of a failed test keeps its brokers alive until
the report. A broker of a shared fixture is reported if it has new events.
"""

import os
from collections.abc import Iterator
from functools import wraps
from weakref import ref

import pytest

from sluice.broker.journal.format_event import format_event
from sluice.broker.journal.reader import JournalReader
from sluice.broker.server.cluster_server import ClusterServer

_EVENTS = 15  # fit on a screen together with the traceback
_servers: list[tuple[ref[ClusterServer], int]] = []  # with the number of events before the test


def note_brokers() -> None:
    """Note all brokers that start from now on."""
    build = ClusterServer.__init__

    @wraps(build)
    def noting(self: ClusterServer, *arguments: object) -> None:
        build(self, *arguments)  # type: ignore[arg-type]  # passed unchanged
        _servers.append((ref(self), -1))

    ClusterServer.__init__ = noting  # type: ignore[assignment,method-assign]


def begin_test() -> None:
    """Forget the brokers of earlier tests, except those of shared fixtures, which still run."""
    alive = [server for found, _ in _servers if (server := found()) is not None and _is_running(server)]
    _servers[:] = [(ref(server), _written(server)) for server in alive]


def choose_seed(config: pytest.Config) -> None:
    """Let Hypothesis try the same examples in each run, unless an option sets the seed."""
    if config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = "0"


def sections(item: pytest.Item) -> Iterator[tuple[str, str]]:
    """Return the titles and texts that the report of a failed test ends with."""
    used = [server for found, before in _servers if (server := found()) is not None and _written(server) > before]
    if used:
        yield "last events of the brokers", "\n".join(line for server in used for line in _last_events(server))
    hash_seed = os.environ.get("PYTHONHASHSEED")
    command = (f"PYTHONHASHSEED={hash_seed} " if hash_seed else "") + f"pytest '{item.nodeid}'"
    if item.get_closest_marker("hypothesis"):
        options = item.config.option
        command += f" --hypothesis-seed={options.hypothesis_seed}"
        if options.hypothesis_profile:
            command += f" --hypothesis-profile={options.hypothesis_profile}"
    yield "repeat with", command


def _written(server: ClusterServer) -> int:
    return 0 if server.cluster.journal is None else server.cluster.journal.written


def _is_running(server: ClusterServer) -> bool:
    is_running = getattr(server._loop, "is_running", None)  # a VirtualLoop has no such method, and belongs to one test
    return is_running is not None and is_running() and not server.is_stopping


def _last_events(server: ClusterServer) -> Iterator[str]:
    name = f"broker {', '.join(map(str, server.brokers))}"
    journal = server.cluster.journal
    if journal is None:
        trace = list(getattr(server._loop, "trace", ()))
        yield f"{name}, without a journal" + (": the last requests and responses" if trace else "")
        yield from (f"  {traced}" for traced in trace)
        return
    yield f"{name}: {journal.written} events"
    for event in JournalReader(journal, server.cluster.runtime.clock).events(after=max(0, journal.written - _EVENTS)):
        yield f"  {format_event(event)}"
