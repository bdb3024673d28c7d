"""A process beside the one that brokers live in, for what would make them late: judging, and clients in virtual time.

It is asked one thing after the other on its standard input, and answers on its output: each a size of four bytes, and a
message in MessagePack. It keeps the observations that it has been given, so that each is sent once. It ends with its
input, and so with whoever started it.
"""

import asyncio
import logging
import sys
from collections.abc import Sequence

import msgspec

from sluice.audit.judge.model.observation import Observation
from sluice.audit.judge.model.verdict import Finding, Verdict
from sluice.audit.probes import Probe
from sluice.errors import SluiceError

from .probe_run import Seen

_SIZE_BYTES = 4


class Keep(msgspec.Struct, frozen=True, tag=True):
    """Keeps an observation."""

    observation: Observation


class Forget(msgspec.Struct, frozen=True, tag=True):
    """Forgets all observations: another subject comes."""


class Judge(msgspec.Struct, frozen=True, tag=True):
    """Asks for the verdict on a statement."""

    statement: str


class Find(msgspec.Struct, frozen=True, tag=True):
    """Asks what else there is to tell of the runs of a probe."""

    probe: str


class Live(msgspec.Struct, frozen=True, tag=True):
    """Asks for a run of a ready subject in virtual time."""

    subject: str
    probe: Probe
    repetition: int
    seed: int


class Answer(msgspec.Struct, frozen=True, omit_defaults=True):
    """What it says: of each question one field, of an error the last."""

    verdict: Verdict | None = None
    findings: list[Finding] = []
    seen: Seen | None = None
    problem: str = ""


Question = Keep | Forget | Judge | Find | Live


class Worker:
    """The process, for those who ask; one question at a time."""

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def keep(self, observation: Observation) -> None:
        await self._ask(Keep(observation))

    async def forget(self) -> None:
        await self._ask(Forget())

    async def judge(self, statement: str) -> Verdict:
        verdict = (await self._ask(Judge(statement))).verdict
        assert verdict is not None
        return verdict

    async def find(self, probe: str) -> list[Finding]:
        return (await self._ask(Find(probe))).findings

    async def live(self, subject: str, probe: Probe, repetition: int, seed: int) -> Seen:
        seen = (await self._ask(Live(subject, probe, repetition, seed))).seen
        assert seen is not None
        return seen

    async def end(self) -> None:
        """Ends the process, with all that it keeps; who asks again gets another."""
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def _ask(self, question: Question) -> Answer:
        """Raises SluiceError, if that came of it."""
        data = msgspec.msgpack.encode(question)
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
                answer = msgspec.msgpack.decode(await stdout.readexactly(size), type=Answer)
            except (OSError, asyncio.IncompleteReadError):
                raise SluiceError("the process that judges has ended") from None
        if answer.problem:
            raise SluiceError(answer.problem)
        return answer


async def _start() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        f"from {__name__} import serve; serve()",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        start_new_session=True,  # Ctrl-C is for who started it
    )


# -- in the process ----------------------------------------------------------------------------------------------------


class _Bench:
    """What the process does."""

    def __init__(self) -> None:
        self._observations: list[Observation] = []

    def answer(self, question: Question) -> Answer:
        match question:
            case Keep():
                self._observations.append(question.observation)
            case Forget():
                self._observations.clear()
            case Judge():
                return Answer(verdict=self._judge(question.statement))
            case Find():
                from sluice.audit.judge import findings

                return Answer(findings=findings(self._of([question.probe])))
            case Live():
                return Answer(seen=_live(question))
        return Answer()

    def _judge(self, statement: str) -> Verdict:
        from sluice.audit.judge import judge
        from sluice.audit.judge.model.statements import STATEMENTS

        return judge(statement, self._of(STATEMENTS[statement].probes))

    def _of(self, probes: Sequence[str]) -> list[Observation]:
        found = [one for one in self._observations if one.probe in probes]
        return sorted(found, key=lambda one: (one.probe, one.repetition))


def _live(question: Live) -> Seen:
    from sluice.audit.subjects import VIRTUAL

    from .virtual_run import live

    return live(VIRTUAL[question.subject], question.probe, question.repetition, question.seed)


def serve() -> None:
    """Answers until there is no more input."""
    logging.disable()  # what clients in virtual time say of what is done to them
    requests, answers, bench = sys.stdin.buffer, sys.stdout.buffer, _Bench()
    while size := requests.read(_SIZE_BYTES):
        question = msgspec.msgpack.decode(requests.read(int.from_bytes(size)), type=Question)
        try:
            answer = bench.answer(question)
        except SluiceError as error:
            answer = Answer(problem=str(error))
        data = msgspec.msgpack.encode(answer)
        answers.write(len(data).to_bytes(_SIZE_BYTES) + data)
        answers.flush()
