"""A worker process for work that would delay the brokers: judging, and clients in virtual time.

Requests on standard input and responses on standard output are each a 4-byte size and a MessagePack message. The worker
keeps the observations, so each is sent once. It ends with its input.
"""

import asyncio
import logging
import sys
from collections.abc import Collection
from pathlib import Path

import msgspec

from sluice.audit.judge import findings, judge
from sluice.audit.judge.measured import measured_backoffs
from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import Finding, MeasuredBackoff, Verdict
from sluice.audit.probes import PROBES, Probe
from sluice.audit.subjects import VIRTUAL
from sluice.errors import SluiceError

from .observation_files import write_observations
from .probe_run import RunResult
from .virtual_run import run_virtual

_SIZE_BYTES = 4


class Keep(msgspec.Struct, frozen=True, tag=True):
    observation: Observation


class Forget(msgspec.Struct, frozen=True, tag=True):
    """Forget all observations, before another subject."""


class Judge(msgspec.Struct, frozen=True, tag=True):
    statement: str


class Find(msgspec.Struct, frozen=True, tag=True):
    probe: str


class Measure(msgspec.Struct, frozen=True, tag=True):
    """Fit the backoffs of all observations."""


class Save(msgspec.Struct, frozen=True, tag=True):
    file: str


class Run(msgspec.Struct, frozen=True, tag=True):
    subject: str
    probe: Probe
    repetition: int
    seed: int


class WorkerResponse(msgspec.Struct, frozen=True, omit_defaults=True):
    """The response: one field per kind of request, and an error message."""

    verdict: Verdict | None = None
    findings: list[Finding] = []
    backoffs: list[MeasuredBackoff] = []
    result: RunResult | None = None
    problem: str = ""


WorkerRequest = Keep | Forget | Judge | Find | Measure | Save | Run


class Worker:
    """The worker process in its parent; it handles one request at a time."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def keep(self, observation: Observation) -> None:
        await self._request(Keep(observation))

    async def forget(self) -> None:
        await self._request(Forget())

    async def judge(self, statement: str) -> Verdict:
        verdict = (await self._request(Judge(statement))).verdict
        assert verdict is not None
        return verdict

    async def find(self, probe: str) -> list[Finding]:
        return (await self._request(Find(probe))).findings

    async def backoffs(self) -> list[MeasuredBackoff]:
        return (await self._request(Measure())).backoffs

    async def save(self, file: Path) -> None:
        await self._request(Save(str(file)))

    async def run(self, subject: str, probe: Probe, repetition: int, seed: int) -> RunResult:
        result = (await self._request(Run(subject, probe, repetition, seed))).result
        assert result is not None
        return result

    async def end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def _request(self, request: WorkerRequest) -> WorkerResponse:
        """Raise SluiceError for an error in the process."""
        data = msgspec.msgpack.encode(request)
        async with self._turn:
            if self._process is None:
                self._process = await _start()
            stdin, stdout = self._process.stdin, self._process.stdout
            assert stdin is not None
            assert stdout is not None
            try:
                stdin.write(len(data).to_bytes(_SIZE_BYTES) + data)
                await stdin.drain()
                size = int.from_bytes(await stdout.readexactly(_SIZE_BYTES))
                response = msgspec.msgpack.decode(await stdout.readexactly(size), type=WorkerResponse)
            except (OSError, asyncio.IncompleteReadError):
                raise SluiceError("audit: the worker process ended unexpectedly") from None
        if response.problem:
            raise SluiceError(response.problem)
        return response


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


class _Process:
    def __init__(self) -> None:
        self._observations: list[Observation] = []

    def respond(self, request: WorkerRequest) -> WorkerResponse:
        match request:
            case Keep():
                self._observations.append(request.observation)
            case Forget():
                self._observations.clear()
            case Judge():
                observations = self._of(STATEMENTS[request.statement].probes)
                return WorkerResponse(verdict=judge(request.statement, observations))
            case Find():
                return WorkerResponse(findings=findings(self._of([request.probe])))
            case Measure():
                return WorkerResponse(backoffs=measured_backoffs(self._of(PROBES)))
            case Save():
                write_observations(Path(request.file), self._observations)
            case Run():
                subject = VIRTUAL[request.subject]
                result = run_virtual(subject, request.probe, request.repetition, request.seed)
                return WorkerResponse(result=result)
        return WorkerResponse()

    def _of(self, probes: Collection[str]) -> list[Observation]:
        found = [one for one in self._observations if one.probe in probes]
        return sorted(found, key=lambda one: (one.probe, one.repetition))


def serve() -> None:
    logging.disable()  # clients in virtual time log every fault
    requests, responses, process = sys.stdin.buffer, sys.stdout.buffer, _Process()
    while size := requests.read(_SIZE_BYTES):
        request = msgspec.msgpack.decode(requests.read(int.from_bytes(size)), type=WorkerRequest)
        try:
            response = process.respond(request)
        except SluiceError as error:
            response = WorkerResponse(problem=str(error))
        data = msgspec.msgpack.encode(response)
        responses.write(len(data).to_bytes(_SIZE_BYTES) + data)
        responses.flush()
