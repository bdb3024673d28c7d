"""The instances of applications, as processes: each has a host, and can be killed, paused, cancelled and restarted."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from functools import partial
from traceback import extract_tb
from typing import Any

from sluice import testing

from .process_loop import HostTask, ProcessLoop

Application = Callable[[], Coroutine[Any, Any, object]]

# Shorter than any session timeout, so that the killed instance is still a member when the next one joins.
_RESTART_S = 0.5
# Longer than the session timeouts of clients (by default 10 and 45 s), and shorter than max.block.ms (60 s).
PAUSE_S = 50.0
_LONGEST_ERROR = 300  # characters


class Processes:
    """The instances of one run, by host."""

    def __init__(self, loop: ProcessLoop, note: Callable[[str], None], starts: Callable[[str], None]) -> None:
        """`note` is called with what happens, `starts` with each new host."""
        self._loop = loop
        self._note = note
        self._starts = starts
        self._applications: dict[str, Application] = {}
        self._tasks: dict[str, asyncio.Task[object]] = {}
        self._ended: set[str] = set()  # hosts that were killed or cancelled
        self._numbers: Counter[str] = Counter()
        self._is_stopping = False

    def start(self, application: Application, name: str) -> None:
        self._applications[name] = application
        self._start(name)

    def current(self) -> str:
        """Return the host of the running code, "" outside of instances."""
        host = testing.network().current_host
        return host if host in self._tasks else ""

    def error(self) -> str:
        """Return the error of the first instance that failed by itself, else ""."""
        for host, task in self._tasks.items():
            if host in self._ended or not task.done():
                continue
            if task.cancelled():
                return f"{host} was cancelled by its own code"
            error = task.exception()
            if error is not None:
                return f"{host} failed: {error_line(error)}"
        return ""

    async def stop(self, within_s: float) -> list[str]:
        """Cancel the instances, and start no more; return the hosts of those that have not ended within a time.

        Those that are paused or killed then are no findings.
        """
        self._is_stopping = True
        tasks = {host: task for host, task in self._tasks.items() if not self._loop.is_paused(host)}
        for task in tasks.values():
            task.cancel()
        if tasks:
            await asyncio.wait(tasks.values(), timeout=within_s)
        return [host for host, task in tasks.items() if not task.done() and not self._loop.is_paused(host)]

    def end(self) -> None:
        """Start and end no instance any more: the loop cancels what is left, which a killed host would not run."""
        self._applications.clear()

    def tasks_of(self, host: str) -> list[str]:
        """Return the names of the coroutines that run on a host."""
        tasks = sorted(asyncio.all_tasks(self._loop), key=hash)
        coroutines = [task.get_coro() for task in tasks if isinstance(task, HostTask) and task.host == host]
        return [getattr(each, "__qualname__", repr(each)) for each in coroutines]

    def running(self) -> list[str]:
        """Return the hosts that were not killed."""
        return [host for host in self._tasks if not self._loop.is_paused(host)]

    # -- what happens to an instance; each returns whether there is one ------------------------------------------------

    def kill(self, host: str) -> bool:
        """Kill an instance: its code does not continue, and its connections are reset."""
        if not self._is_alive(host):
            return False
        self._ended.add(host)
        self._note(f"{host} is killed")
        self._exit(host)
        return True

    def cancel(self, host: str) -> bool:
        """Cancel the task of an instance, as SIGTERM does; when the task has ended, the process exits."""
        if not self._is_alive(host):
            return False
        self._ended.add(host)
        self._note(f"{host} is cancelled")
        task = self._tasks[host]
        task.add_done_callback(lambda _: self._exit(host))
        task.cancel()
        return True

    def pause(self, host: str) -> bool:
        """Stop the code of an instance for longer than its session timeout."""
        if not self._is_alive(host) or self._loop.is_paused(host):
            return False
        self._note(f"{host} is paused for {PAUSE_S:g} s")
        self._loop.pause(host)
        self._loop.call_later(PAUSE_S, self._resume, host)
        return True

    def start_another(self, host: str) -> bool:
        """Start another instance of the same application."""
        if host not in self._tasks:
            return False
        self._start(_name_of(host))
        return True

    # -- details -------------------------------------------------------------------------------------------------------

    def _is_alive(self, host: str) -> bool:
        return host in self._tasks and host not in self._ended and not self._tasks[host].done()

    def _resume(self, host: str) -> None:
        if self._loop.resume(host):
            self._note(f"{host} continues")

    def _exit(self, host: str) -> None:
        """End a process, also what its client has left running, and start the next one."""
        if not self._applications:
            return
        self._loop.kill(host)
        testing.network().reset(host)
        testing.network().partition(host)
        self._loop.call_later(_RESTART_S, partial(self._start, _name_of(host)))

    def _start(self, name: str) -> None:
        if self._is_stopping or name not in self._applications:
            return
        self._numbers[name] += 1
        host = f"{name}-{self._numbers[name]}"
        self._note(f"{host} starts")
        self._starts(host)
        with testing.network().host(host):
            self._tasks[host] = self._loop.create_task(self._applications[name](), name=host)


def _name_of(host: str) -> str:
    return host.rpartition("-")[0]


def error_line(error: BaseException) -> str:
    """Return an error as one line, of clients whose messages are paragraphs too."""
    text = str(error)
    if isinstance(error, AssertionError) and not text and error.__traceback__ is not None:
        text = extract_tb(error.__traceback__)[-1].line or ""
    return f"{type(error).__name__}: {' '.join(text.split())}"[:_LONGEST_ERROR]
