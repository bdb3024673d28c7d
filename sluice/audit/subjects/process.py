"""A subject's process: started in its own group, and ended with its child processes.

Only the output of drivers and the last bytes of standard error are kept.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from sluice.errors import SubjectError

_LAST_OUTPUT_BYTES = 2000
_LINE_BYTES = 1 << 20
# The time between SIGTERM and SIGKILL, and for the last output to arrive.
_END_S = 1.0


class SubjectProcess:
    def __init__(self, process: asyncio.subprocess.Process, on_line: Callable[[bytes], None]) -> None:
        self._process = process
        self._on_line = on_line
        self._last_output = b""
        self._reading = asyncio.create_task(self._read())
        self._loop = asyncio.get_running_loop()
        self._read_until: float | None = None  # by the loop's time; set when the exit was first noticed

    @classmethod
    async def start(
        cls,
        command: Sequence[str],
        on_line: Callable[[bytes], None],
        *,
        stdin: bytes | None = b"",
        environment: Mapping[str, str] | None = None,
    ) -> "SubjectProcess":
        """Start a command; `stdin=None` keeps its standard input open and empty. Raises SubjectError."""
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
            raise SubjectError(f"{command[0]}: cannot start: {error.strerror or error}") from None
        started = cls(process, on_line)
        assert process.stdin is not None
        if stdin is not None:
            process.stdin.write(stdin)
            process.stdin.close()
        return started

    def ended(self) -> str | None:
        """Return why it ended; None while it runs, or while its last output may still arrive."""
        code = self._process.returncode
        if code is None or (not self._reading.done() and self._may_still_read()):
            return None
        how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        output = self.last_output()
        return f"{how}: {output}" if output else how

    def last_output(self) -> str:
        lines = [line for line in self._last_output.decode(errors="replace").splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""

    def _may_still_read(self) -> bool:
        """Return True for a second, and no longer, because another process may keep the pipes open."""
        if self._read_until is None:
            self._read_until = self._loop.time() + _END_S
        return self._loop.time() < self._read_until

    async def end(self) -> None:
        """End the process group by SIGTERM, and by SIGKILL after a second."""
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self._process.wait(), _END_S)
        except TimeoutError:
            pass
        finally:
            self._signal(signal.SIGKILL)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _END_S)
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
            except ValueError:  # a line longer than the limit
                continue
            if not line:
                return
            self._on_line(line)

    async def _read_errors(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        while data := await stderr.read(1 << 16):
            self._last_output = (self._last_output + data)[-_LAST_OUTPUT_BYTES:]
