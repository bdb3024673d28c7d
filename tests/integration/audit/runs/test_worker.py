"""The process for clients in virtual time."""

import asyncio

import pytest

from sluice.audit.probes import PROBES
from sluice.audit.runs.worker import Worker


def test_what_clients_log_in_virtual_time_is_kept_to_themselves(capfd: pytest.CaptureFixture[str]) -> None:
    """aiokafka warns of each connection that it loses, and brokers tell of those that they close."""

    async def main() -> int:
        worker = Worker()
        try:
            seen = await worker.run("aiokafka-virtual", PROBES["reconnect-lost"], repetition=0, seed=0)
        finally:
            await worker.end()
        return len(seen.observation.events)

    assert asyncio.run(asyncio.wait_for(main(), 60)) > 100
    assert capfd.readouterr() == ("", "")
