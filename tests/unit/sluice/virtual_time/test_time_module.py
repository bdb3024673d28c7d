import asyncio
import threading
import time

import pytest

from sluice import testing
from sluice.testing import VirtualLoop, patch_time

READINGS = ["time", "time_ns", "monotonic", "monotonic_ns"]


def read(name: str) -> float:
    now: float = getattr(time, name)()
    return now / 1e9 if name.endswith("_ns") else now


@pytest.mark.parametrize("name", READINGS)
class TestTheTimeModule:
    def test_time_module_returns_virtual_time_inside_the_loop(self, name: str) -> None:
        async def main() -> float:
            began = read(name)
            await asyncio.sleep(1e6)
            return read(name) - began

        assert testing.run(main(), until=2e6) == pytest.approx(1e6)

    def test_time_module_returns_real_time_in_other_threads(self, name: str) -> None:
        seen: list[float] = []

        async def main() -> None:
            await asyncio.sleep(80_000)
            thread = threading.Thread(target=lambda: seen.append(read(name)))
            thread.start()
            thread.join()

        began = read(name)
        testing.run(main())
        assert began <= seen[0] < began + 1000

    def test_time_module_returns_real_time_between_two_runs(self, name: str) -> None:
        loop = VirtualLoop()
        began = read(name)
        with patch_time(loop):
            loop.run_until_complete(asyncio.sleep(80_000))
            between = read(name)
        loop.close()
        assert began <= between < began + 1000

    def test_time_module_is_restored(self, name: str) -> None:
        before = getattr(time, name)
        testing.run(asyncio.sleep(1))
        assert getattr(time, name) is before


async def test_wall_clock_starts_at_a_fixed_time() -> None:
    await asyncio.sleep(0.25)
    seconds, nanoseconds = time.time(), time.time_ns()
    assert seconds == 1_700_000_000.25
    assert 0 <= nanoseconds - 1_700_000_000_250_000_000 < 10
