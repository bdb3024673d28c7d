"""A subject's process: started in a group of its own, read line by line, and ended with all that it started.

Output is read as it comes, by the loop that the brokers run in. What a command says that nobody asks for is thrown
away, but for its last words, which say why it ended.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from .subject import SubjectError

_LAST_WORDS = 2000  # bytes
_LINE_BYTES = 1 << 20
# A process that is told to end has so long to do it.
_END_S = 1.0


class SubjectProcess:
    """A process at work."""

    def __init__(self, process: asyncio.subprocess.Process, on_line: Callable[[bytes], None]) -> None:
        self._process = process
        self._on_line = on_line
        self._last_words = b""
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        on_line: Callable[[bytes], None],
        *,
        stdin: bytes | None = b"",
        environment: Mapping[str, str] | None = None,
    ) -> "SubjectProcess":
        """`stdin`: what it reads; None: nothing, but for as long as this process lives.

        Raises SubjectError for a command that cannot be started.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LINE_BYTES,
                start_new_session=True,
                env=None if environment is None else {**os.environ, **environment},
            )
        except OSError as error:
            raise SubjectError(f"{command[0]}: cannot be started: {error.strerror or error}") from None
        started = cls(process, on_line)
        assert process.stdin is not None
        if stdin is not None:
            process.stdin.write(stdin)
            process.stdin.close()
        return started

    def ended(self) -> str | None:
        """Why it has ended; None while it runs."""
        code = self._process.returncode
        if code is None:
            return None
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        lines = [line for line in self._last_words.decode(errors="replace").splitlines() if line.strip()]
        return f"{how}: {lines[-1].strip()}" if lines else how

    async def end(self) -> None:
        """Ends it with its whole group: by SIGTERM, and by SIGKILL what is left of it."""
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _END_S)
        except TimeoutError:
            pass
        finally:
            self._signal(signal.SIGKILL)
        await self._process.wait()
        with suppress(TimeoutError):  # somebody outside of the group may hold the pipes
            await asyncio.wait_for(self._reading, _END_S)

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    async def _read(self) -> None:
        await asyncio.gather(self._read_lines(), self._read_errors())

    async def _read_lines(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        while True:
            try:
                line = await stdout.readline()
            except ValueError:  # a line without an end
                continue
            if not line:
                return
            self._on_line(line)

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while data := await stderr.read(1 << 16):
            self._last_words = (self._last_words + data)[-_LAST_WORDS:]
