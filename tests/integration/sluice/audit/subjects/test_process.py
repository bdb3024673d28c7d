"""Subject processes in real time: the reason of each exit, and cleanup of child processes."""

import asyncio
import sys

import pytest

from sluice.audit.subjects.process import SubjectProcess
from sluice.errors import SubjectError


async def started(code: str, lines: list[bytes]) -> SubjectProcess:
    return await SubjectProcess.start([sys.executable, "-S", "-c", code], lines.append, stdin=b"input")


async def until_ended(process: SubjectProcess) -> str:
    await process._process.wait()
    await process._reading
    return process.ended() or "nothing"


PROCESSES = {
    "that finishes": ("print('a'); print('b')", "exited with 0"),
    "that fails": ("import sys; sys.exit('no such topic')", "exited with 1: no such topic"),
    "that is killed": ("import os; os.kill(os.getpid(), 9)", "was ended by SIGKILL"),
}


@pytest.mark.parametrize(("code", "ended"), PROCESSES.values(), ids=PROCESSES)
async def test_process(code: str, ended: str) -> None:
    process = await started(code, [])
    assert await until_ended(process) == ended
    await process.end()


async def test_reason_that_arrives_after_the_exit_is_reported() -> None:
    # The child outlives the shell until its input ends, and then writes to the shell's standard error.
    script = "exec 3<&0; (read line <&3; echo no such topic >&2) & exit 1"
    process = await SubjectProcess.start(["sh", "-c", script], lambda line: None, stdin=None)
    while process._process.returncode is None:  # noqa: ASYNC110  (`wait` also waits for the pipes)
        await asyncio.sleep(0.01)
    assert process.ended() is None, "its standard error is still open"
    assert process._process.stdin is not None
    process._process.stdin.close()
    await process._reading
    await process.end()
    assert process.ended() == "exited with 1: no such topic"


async def test_output_lines_are_read_as_they_come_and_standard_input_is_provided() -> None:
    lines: list[bytes] = []
    process = await started("import sys; print('read', sys.stdin.read())", lines)
    await until_ended(process)
    await process.end()
    assert lines == [b"read input\n"]


async def test_stopping_kills_child_processes_that_ignore_sigterm() -> None:
    code = (
        "import os, signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); child = os.fork();"
        "print(child, flush=True) if child else None; time.sleep(60)"
    )
    forked = asyncio.Event()
    command = [sys.executable, "-S", "-c", code]
    process = await SubjectProcess.start(command, lambda line: forked.set())
    await forked.wait()
    await process.end()
    assert process.ended() == "was ended by SIGKILL"
    assert process._reading.done()
    assert not process._reading.cancelled(), "its output ends, because no process holds it open"


async def test_command_that_cannot_start_is_reported_in_one_line() -> None:
    with pytest.raises(SubjectError, match=r"^no-such-program: cannot start: No such file or directory$"):
        await SubjectProcess.start(["no-such-program"], lambda line: None)
