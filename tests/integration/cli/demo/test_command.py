"""A signal ends `sluice demo` and its broker."""

import asyncio
import re
import signal
import socket
import subprocess
import sys

import pytest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
async def test_signal_ends_the_demo_and_its_broker(number: signal.Signals) -> None:
    demo = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "sluice", "demo", "--format", "json"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert demo.stderr is not None
    line = await demo.stderr.readline()
    listens_at = re.fullmatch(rb"broker at 127\.0\.0\.1:(\d+), page at http://127\.0\.0\.1:(\d+)/.*\n", line)
    assert listens_at, line
    for port in listens_at.groups():
        socket.create_connection(("127.0.0.1", int(port))).close()
    demo.send_signal(number)
    stdout, stderr = await demo.communicate()
    assert (demo.returncode, stdout) == (1, b"")
    assert len(stderr.decode().strip().splitlines()) == 1, stderr.decode()
    for port in listens_at.groups():
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(port)))
