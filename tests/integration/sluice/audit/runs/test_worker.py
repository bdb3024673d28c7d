"""The process for clients in virtual time."""

import asyncio

import pytest

from sluice.audit.probes import PROBES
from sluice.audit.runs.worker import Worker


def test_log_messages_of_clients_in_virtual_time_are_suppressed(capfd: pytest.CaptureFixture[str]) -> None:
    """Covers aiokafka, which logs each lost connection, and brokers, which log those they close."""

    async def main() -> int:
        worker = Worker()
        try:
            seen = await worker.run("aiokafka-virtual", PROBES["reconnect-lost"], repetition=0, seed=0)
        finally:
            await worker.end()
        return len(seen.observation.events)

    assert asyncio.run(main()) > 100
    assert capfd.readouterr() == ("", "")
