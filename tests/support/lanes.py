"""Processes that share the collection of one pytest: forks of it, which run groups of its tests.

pytest-xdist collects all tests in each process: 10 s of processor time each, and reports each test to a further
process, which takes a quarter of the processor time of unit tests.
"""

import os
import sys
import warnings
from collections.abc import Iterator
from itertools import groupby
from tempfile import TemporaryFile
from typing import IO

import pytest

# Small, so that the lanes end at about the same time. A lane runs its groups of a file one after the other, so fixtures
# of modules are made once in each lane.
_GROUP = 16
_INDEX_BYTES = 2

Group = list[pytest.Item]


def run(session: pytest.Session, number: int) -> None:
    """Run the tests of a session in this process and `number - 1` forks of it, and print what the forks printed."""
    groups = list(_groups(session.items))
    queue = _queue(len(groups))
    forks = list[tuple[int, IO[bytes]]]()
    for lane in range(1, number):
        output: IO[bytes] = TemporaryFile()  # noqa: SIM115  (read after the fork has ended)
        pid = _fork()
        if not pid:
            _become_lane(session.config, lane, output)
            for file in [output, *(earlier for _, earlier in forks)]:
                file.close()
            _run(session, _taken(groups, queue))
            return
        forks.append((pid, output))
    _run(session, _taken(groups, queue))
    for pid, output in forks:
        session.testsfailed += os.waitpid(pid, 0)[1] != 0
        with output:
            output.seek(0)
            print(f"\n{output.read().decode(errors='replace')}", flush=True)


def _groups(items: list[pytest.Item]) -> Iterator[Group]:
    for _, of_file in groupby(items, key=lambda item: item.path):
        tests = list(of_file)
        yield from (tests[start : start + _GROUP] for start in range(0, len(tests), _GROUP))


def _queue(number: int) -> int:
    """Return a pipe with numbers, of which each reader gets the next; they fit into the buffer of the pipe."""
    read, write = os.pipe()
    os.write(write, b"".join(index.to_bytes(_INDEX_BYTES, "big") for index in range(number)))
    os.close(write)
    return read


def _taken(groups: list[Group], queue: int) -> Iterator[pytest.Item]:
    while index := os.read(queue, _INDEX_BYTES):
        yield from groups[int.from_bytes(index, "big")]


def _run(session: pytest.Session, items: Iterator[pytest.Item]) -> None:
    item = next(items, None)
    while item is not None:
        following = next(items, None)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following
        if session.shouldfail or session.shouldstop:
            return


def _fork() -> int:
    sys.stdout.flush()
    with warnings.catch_warnings():
        # NumPy's threads wait for work, and its library starts them again in the fork.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()


def _become_lane(config: pytest.Config, lane: int, output: IO[bytes]) -> None:
    """Print to a file, and write outcomes beside those of the first lane."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    capture.stop_global_capturing()  # its files are those of the first lane
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    capture.start_global_capturing()
    capture.suspend_global_capture()
    if config.option.outcomes is not None:
        config.option.outcomes += f".{lane}"
