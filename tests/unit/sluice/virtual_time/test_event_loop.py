import asyncio
import threading
from collections.abc import Callable, Coroutine

import pytest

from sluice import testing
from sluice.testing import DeadlockError, RunawayError, VirtualLoop

HOUR_S = 3600.0


class TestTime:
    def test_time_passes_while_all_tasks_wait(self) -> None:
        async def main() -> float:
            loop = asyncio.get_running_loop()
            began = loop.time()
            await asyncio.sleep(10 * HOUR_S)
            return loop.time() - began

        assert testing.run(main()) == pytest.approx(10 * HOUR_S)

    @pytest.mark.parametrize("delay_s", [0.1, 1 / 3, 0.0005, 1e-9, 12_345.678_901_234], ids=str)
    async def test_time_equals_the_timers_deadline(self, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        await asyncio.sleep(delay_s)
        assert loop.time() - began == pytest.approx(delay_s, abs=2e-9)

    async def test_running_code_takes_almost_no_time(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        began_ns = loop.monotonic_ns()
        for _ in range(90):
            await asyncio.sleep(0)
        assert loop.monotonic_ns() - began_ns == 90

    def test_time_passes_for_a_polling_task(self) -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            began = loop.time()
            while loop.time() <= began:  # noqa: ASYNC110  (on purpose)
                await asyncio.sleep(0)

        testing.run(main(), max_turns=100)

    async def test_timer_below_the_clock_resolution_advances_time(self) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        for _ in range(10):
            await asyncio.sleep(3e-12)
        assert 0 < loop.time() - began < 1e-7

    async def test_wall_clock_can_be_set(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        before = loop.wall_ns()
        loop.set_wall_clock(3600)
        assert loop.wall_ns() == before + 3600 * 10**9

    async def test_wall_time_follows_loop_time(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        began_ns = loop.wall_ns()
        await asyncio.sleep(1.5)
        assert 1_500_000_000 <= loop.wall_ns() - began_ns < 1_500_000_010

    async def test_timers_order_many_tasks(self) -> None:
        seen: list[float] = []

        async def note(delay_s: float) -> None:
            await asyncio.sleep(delay_s)
            seen.append(delay_s)

        await asyncio.gather(*map(note, (3.0, 1.0, 2.0, 86_000.0, 0.0)))
        assert seen == [0.0, 1.0, 2.0, 3.0, 86_000.0]

    def test_timeouts_work(self) -> None:
        async def main() -> None:
            async with asyncio.timeout(5):
                await asyncio.sleep(6)

        with pytest.raises(TimeoutError):
            testing.run(main())


async def waits_forever() -> None:
    await asyncio.get_running_loop().create_future()


async def nested() -> None:
    await waits_forever()


async def waits_by_turns() -> None:
    while True:  # noqa: ASYNC110  (on purpose)
        await asyncio.sleep(0)


async def sleeps_on() -> None:
    while True:  # noqa: ASYNC110  (on purpose)
        await asyncio.sleep(1)


ENDLESS = {
    "of time": (sleeps_on, {"until": 60.0}, "not done after 60 virtual seconds"),
    "of turns": (waits_by_turns, {"max_turns": 1000}, "not done after 1000 event-loop iterations"),
}


class TestAnEnd:
    def test_deadlock_error_names_waiting_tasks_and_places(self) -> None:
        async def main() -> None:
            worker = asyncio.create_task(nested(), name="worker")
            await worker

        problem = r"(?s)deadlock: all tasks wait.*worker waits in waits_forever, .*test_event_loop.py:\d+"
        with pytest.raises(DeadlockError, match=problem):
            testing.run(main())

    @pytest.mark.parametrize(("endless", "limits", "says"), ENDLESS.values(), ids=ENDLESS)
    def test_runaway_error_names_waiting_tasks(
        self, endless: Callable[[], Coroutine[None, None, None]], limits: dict[str, float], says: str
    ) -> None:
        with pytest.raises(RunawayError, match=f"(?s){says}.*waits in (sleep|__sleep0), "):
            testing.run(endless(), **limits)  # type: ignore[arg-type]  # the limits' own names

    def test_time_limit_leaves_time_for_cleanup(self) -> None:
        cleaned: list[str] = []

        async def main() -> None:
            try:
                await sleeps_on()
            finally:
                await asyncio.sleep(10)
                cleaned.append("up")

        with pytest.raises(RunawayError):
            testing.run(main(), until=60)
        assert cleaned == ["up"]

    def test_time_limit_is_removed_when_the_run_ends(self) -> None:
        testing.run(asyncio.sleep(60), until=60)

    def test_error_lists_some_of_many_tasks(self) -> None:
        async def main() -> None:
            await asyncio.gather(*(waits_forever() for _ in range(100)))

        with pytest.raises(DeadlockError, match="and 81 more tasks"):
            testing.run(main())


UNSUPPORTED = {
    "TLS": lambda loop: loop.create_connection(asyncio.Protocol, "a", 1, ssl=True),
    "a TLS server": lambda loop: loop.create_server(asyncio.Protocol, "a", 1, ssl=object()),
    "a real socket": lambda loop: loop.create_server(asyncio.Protocol, sock=object()),
}


class TestNothingComesFromOutside:
    async def test_executor_runs_in_the_loop_thread(self) -> None:
        first, second = await asyncio.to_thread(threading.get_ident), threading.get_ident()
        assert first == second

    def test_executor_raises_the_functions_exception(self) -> None:
        def fails() -> None:
            raise KeyError("here")

        async def main() -> None:
            await asyncio.get_running_loop().run_in_executor(None, fails)

        with pytest.raises(KeyError, match="here"):
            testing.run(main())

    def test_sets_of_tasks_have_a_fixed_order(self) -> None:
        async def main() -> list[str]:
            done, _ = await asyncio.wait([asyncio.create_task(asyncio.sleep(1), name=str(i)) for i in range(50)])
            return [task.get_name() for task in done]

        first = testing.run(main())
        assert testing.run(main()) == first
        assert first == [str(i) for i in range(50)]

    @pytest.mark.parametrize("call", UNSUPPORTED.values(), ids=UNSUPPORTED)
    def test_unsupported_operation_is_rejected(
        self, call: Callable[[VirtualLoop], Coroutine[None, None, None]]
    ) -> None:
        async def main() -> None:
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            await call(loop)

        with pytest.raises(NotImplementedError, match="the memory network does not support"):
            testing.run(main())
