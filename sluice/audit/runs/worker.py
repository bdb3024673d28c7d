"""A worker process for work that would delay the brokers: judging, and clients in virtual time.

It calls the functions of this module that it receives. It keeps the observations, so each is sent once, as MessagePack,
which is faster than pickle. It ends with its input.
"""

import asyncio
import logging
import pickle
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

import msgspec

from sluice.audit.judge import findings, judge
from sluice.audit.judge.measured import measured_backoffs
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import Finding, MeasuredBackoff, Verdict
from sluice.audit.probes import PROBES
from sluice.audit.probes.probe import Probe
from sluice.audit.subjects import VIRTUAL
from sluice.errors import SluiceError

from .observation_files import write_observations
from .probe_run import RunResult
from .virtual_run import run_virtual

P = ParamSpec("P")
T = TypeVar("T")

_SIZE_BYTES = 4  # in front of a response


class Worker:
    """The worker process in its parent; it handles one call at a time."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the function's result in the process; raise SluiceError if it did, or if the process has ended."""
        async with self._turn:
            if self._process is None:
                self._process = await _start()
            stdin, stdout = self._process.stdin, self._process.stdout
            assert stdin is not None
            assert stdout is not None
            try:
                stdin.write(pickle.dumps((function, args, kwargs)))
                await stdin.drain()
                size = int.from_bytes(await stdout.readexactly(_SIZE_BYTES))
                result: T | SluiceError = pickle.loads(await stdout.readexactly(size))  # noqa: S301  (of our process)
            except (OSError, asyncio.IncompleteReadError):
                raise SluiceError("audit: the worker process ended unexpectedly") from None
        if isinstance(result, SluiceError):
            raise result
        return result

    async def keep(self, observation: Observation) -> None:
        await self.call(keep_encoded, msgspec.msgpack.encode(observation))

    async def run(self, subject: str, probe: Probe, repetition: int, seed: int) -> RunResult:
        """Run a client in virtual time."""
        return msgspec.msgpack.decode(await self.call(run_encoded, subject, probe, repetition, seed), type=RunResult)

    async def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _start() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        f"from {__name__} import serve; serve()",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C signals the parent only
    )


# -- in the process ----------------------------------------------------------------------------------------------------

_kept: list[Observation] = []


def serve() -> None:
    logging.disable()  # clients in virtual time log every fault
    responses = sys.stdout.buffer
    for function, args, kwargs in _calls():
        try:
            result = function(*args, **kwargs)
        except SluiceError as error:
            result = error
        data = pickle.dumps(result)
        responses.write(len(data).to_bytes(_SIZE_BYTES) + data)
        responses.flush()


def _calls() -> Iterator[tuple[Callable[..., object], tuple[object, ...], dict[str, object]]]:
    with suppress(EOFError):
        while True:
            yield pickle.load(sys.stdin.buffer)  # noqa: S301  (of our parent)


def keep_encoded(observation: bytes) -> None:
    _kept.append(msgspec.msgpack.decode(observation, type=Observation))


def forget() -> None:
    """Forget all observations, before another subject."""
    _kept.clear()


def judge_kept(statement: str) -> Verdict:
    return judge(statement, _of(STATEMENTS[statement].probes))


def find_in_kept(probe: str) -> list[Finding]:
    return findings(_of([probe]))


def backoffs_of_kept() -> list[MeasuredBackoff]:
    return measured_backoffs(_of(PROBES))


def save_kept(file: Path) -> None:
    write_observations(file, _kept)


def run_encoded(subject: str, probe: Probe, repetition: int, seed: int) -> bytes:
    return msgspec.msgpack.encode(run_virtual(VIRTUAL[subject], probe, repetition, seed))


def _of(probes: Collection[str]) -> list[Observation]:
    return sorted((one for one in _kept if one.probe in probes), key=lambda one: (one.probe, one.repetition))
