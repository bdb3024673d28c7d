"""A signal ends `sluice demo` and its broker."""

import asyncio
import os
import re
import signal
import subprocess
import sys

import pytest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
async def test_signal_ends_the_demo_and_its_broker(number: signal.Signals) -> None:
    demo = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sluice", "demo", "--format", "json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # so that its process group has no other processes
    )
    assert demo.stderr is not None
    assert re.match(rb"broker at 127\.0\.0\.1:\d+, page at http://127\.0\.0\.1:\d+/", await demo.stderr.readline())
    demo.send_signal(number)
    stdout, stderr = await demo.communicate()
    assert (demo.returncode, stdout) == (1, b"")
    assert len(stderr.decode().strip().splitlines()) == 1, stderr.decode()
    with pytest.raises(ProcessLookupError):
        os.killpg(demo.pid, 0)
