"""A run in virtual time: faster than real time, and reproducible. It needs a separate event loop, and so a process."""

import asyncio

from sluice import testing
from sluice.audit.probes.probe import Probe
from sluice.audit.subjects.driven import VirtualSubject
from sluice.clock import LoopClock

from .probe_run import RunResult, run


def run_virtual(subject: VirtualSubject, probe: Probe, repetition: int, seed: int) -> RunResult:
    async def main() -> RunResult:
        clock = LoopClock(asyncio.get_running_loop())
        return await run(subject, probe, repetition, seed, clock, asyncio.Lock(), lambda: lambda: 0.0)

    subject.load()
    return testing.run(main(), seed=seed)
