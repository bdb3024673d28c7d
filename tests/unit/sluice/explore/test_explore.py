"""Exploring programs in virtual time: what is found, how it is reduced, and that it can be repeated."""

import asyncio
import gc
import warnings
from contextlib import suppress
from functools import partial

import pytest

from sluice.client.admin import AdminClient
from sluice.client.consumer import Consumer
from sluice.client.errors import KafkaException
from sluice.client.producer import Producer
from sluice.errors import ArgumentError, ExploreError, SluiceError
from sluice.explore import AtLeastOnce, ExactlyOnce, Run, explore, replay
from sluice.explore.evaluation import in_this_process
from sluice.explore.execution import Options, Outcome, Program, Schedule, execute
from sluice.explore.injection import Injection
from sluice.explore.process_loop import ProcessLoop
from sluice.explore.search import search

RECORDS = 4
COMMIT = Injection("kill-after", "shop", "OffsetCommit", 1)
AT_LEAST_ONCE = Options([AtLeastOnce("orders")])


async def _produce(run: Run) -> None:
    await run.broker.cluster.create_topic("orders")
    await run.broker.client().send("orders", *map(str, range(RECORDS)))


def consuming(*, commits_first: bool) -> Program:
    """Return a program whose application commits each record before or after it processes it."""

    async def program(run: Run) -> None:
        await _produce(run)

        async def commit(consumer: Consumer) -> None:
            with suppress(KafkaException):  # its successor commits
                await consumer.commit()

        async def application() -> None:
            config: dict[str, str | int] = {
                "bootstrap.servers": run.broker.bootstrap,
                "client.id": "shop",
                "group.id": "shop",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": "false",
                "max.poll.records": 1,
            }
            async with Consumer(config) as consumer:
                consumer.subscribe(["orders"])
                while True:
                    for record in await consumer.poll(100):
                        if commits_first:
                            await commit(consumer)
                        await asyncio.sleep(0.01)
                        run.processed(record)
                        if not commits_first:
                            await commit(consumer)

        run.start(application)
        await run.wait_for(lambda: ("orders", 0, RECORDS - 1) in run.processed_records)

    return program


def test_commit_before_processing_is_found_and_reduced_to_one_failure() -> None:
    result = search(in_this_process(consuming(commits_first=True), AT_LEAST_ONCE), 100, seed=0)
    assert result.found is not None
    assert len(result.found.schedule.injections) == 1
    assert result.found.schedule.order == 0


def test_failure_is_repeated_without_a_search() -> None:
    with pytest.raises(ExploreError) as raised:
        replay(consuming(commits_first=True), [COMMIT], invariants=[AtLeastOnce("orders")])
    report = str(raised.value)
    assert "OffsetCommit request 1 of shop is handled, then its application is killed, and restarted" in report
    assert "then: AtLeastOnce: orders-0 offset 0 (b'0') was not processed" in report
    steps = [line for line in report.splitlines() if "app-" in line]
    assert [step.partition("s: ")[2] for step in steps[:3]] == ["app-1 starts", "app-1 is killed", "app-2 starts"]


def test_fixed_program_survives_the_same_failure() -> None:
    replay(consuming(commits_first=False), [COMMIT], invariants=[AtLeastOnce("orders")])


def test_same_schedule_has_the_same_outcome() -> None:
    def outcome() -> Outcome:
        schedule = Schedule((Injection("response-lost", "shop", "OffsetCommit", 2),), order=3)
        return execute(consuming(commits_first=False), schedule, AT_LEAST_ONCE)

    assert outcome() == outcome()


def test_another_order_has_another_outcome() -> None:
    first, second = (execute(consuming(commits_first=False), Schedule(order=order), Options()) for order in (0, 1))
    assert first.error == second.error == ""
    assert [at_s for at_s, _ in first.happened] != [at_s for at_s, _ in second.happened]


def test_client_without_an_id_has_the_same_points_in_each_run() -> None:
    async def program(run: Run) -> None:
        async with Producer({"bootstrap.servers": run.broker.bootstrap}) as producer:
            await producer.send("orders", b"0")

    schedule = Schedule((Injection("response-lost", "producer-*", "Produce", 1),))

    def outcome() -> Outcome:
        return execute(program, schedule, Options())

    first, second = outcome(), outcome()
    assert [each.client_id for each in first.points] == [each.client_id for each in second.points]
    assert not first.missed
    assert not second.missed
    assert schedule.injections[0].sentence in [what for _, what in first.happened]


def test_failure_without_a_failure_of_the_cluster_is_reported_as_such() -> None:
    async def program(run: Run) -> None:
        raise ValueError("two\nlines")

    with pytest.raises(ExploreError, match="fails without any failure of the cluster:\n  ValueError: two lines"):
        explore(program)


def test_failure_of_an_application_precedes_what_follows_from_it() -> None:
    async def program(run: Run) -> None:
        async def application() -> None:
            raise ValueError("no")

        run.start(application, "shop")
        await run.wait_for(lambda: False, within_s=1)

    with pytest.raises(ExploreError, match="shop-1 failed: ValueError: no"):
        explore(program)


def test_application_whose_client_raises_cancelled_error_has_failed() -> None:
    async def program(run: Run) -> None:
        async def application() -> None:
            raise asyncio.CancelledError

        run.start(application, "shop")
        await run.wait_for(lambda: False, within_s=1)

    assert execute(program, Schedule(), Options()).error == "shop-1 was cancelled by its own code"


def test_program_that_never_ends_is_a_failure() -> None:
    async def program(run: Run) -> None:
        await run.wait_for(lambda: False, within_s=1e6)

    assert "not done after 1800 virtual seconds" in execute(program, Schedule(), Options()).error


def test_injection_that_does_not_hit_is_reported() -> None:
    with pytest.warns(UserWarning, match="the program sent no request for slow shop OffsetCommit 9"):
        replay(consuming(commits_first=False), ["slow shop OffsetCommit 9"])


async def nothing(run: Run) -> None:
    """Do nothing."""


def test_program_without_requests_is_no_success() -> None:
    with pytest.raises(ExploreError, match="no failure was injected"):
        explore(nothing)
    explore(nothing, runs=1)


WRONG: dict[str, tuple[dict[str, object], str]] = {
    "no runs": ({"runs": 0}, "explore: runs: expected an integer of at least 1, got 0"),
    "no invariant": ({"invariants": ["orders"]}, r"explore: invariants\[0\]: expected Invariant, got 'orders'"),
    "no broker": ({"brokers": 0}, "explore: brokers: expected an integer of at least 1, got 0"),
    "a wrong config": ({"config": {"no.such": 1}}, "no.such"),
    "an unknown argument": ({"rins": 3}, "explore: rins: unknown argument; expected one of "),
}


@pytest.mark.parametrize(("given", "expected"), WRONG.values(), ids=WRONG)
def test_wrong_argument(given: dict[str, object], expected: str) -> None:
    with pytest.raises(SluiceError, match=expected):
        explore(nothing, **given)  # type: ignore[arg-type]  # on purpose


@pytest.mark.parametrize(("client_id", "killed"), [("reader", "reader-1"), ("writer", "writer-1"), ("program", None)])
def test_application_that_sent_the_request_is_killed(client_id: str, killed: str | None) -> None:
    async def program(run: Run) -> None:
        async def ask(name: str) -> None:
            async with AdminClient({"bootstrap.servers": run.broker.bootstrap, "client.id": name}) as admin:
                await admin.list_groups()

        for name in ("writer", "reader"):
            run.start(partial(ask, name), name)
        await ask("program")
        await run.wait_for(lambda: False, within_s=2)

    schedule = Schedule((Injection("kill-after", client_id, "ListGroups", 1),))
    happened = [what for _, what in execute(program, schedule, Options()).happened]
    assert [what for what in happened if what.endswith("killed")] == ([f"{killed} is killed"] if killed else [])


def test_wrong_injection_is_refused() -> None:
    with pytest.raises(ArgumentError, match="got slow shop"):
        replay(consuming(commits_first=False), ["slow shop"])


# -- events ------------------------------------------------------------------------------------------------------------


EXPECTED = [
    ("kill-after", ["app-1 starts", "app-1 is killed", "app-2 starts"]),
    ("second-instance", ["app-1 starts", "app-2 starts"]),
]


@pytest.mark.parametrize(("kind", "expected"), EXPECTED)
def test_what_happens_to_an_application(kind: str, expected: list[str]) -> None:
    schedule = Schedule((Injection(kind, "shop", "OffsetCommit", 1),))
    outcome = execute(consuming(commits_first=False), schedule, Options())
    assert outcome.error == ""
    events = [what for _, what in outcome.happened if what.startswith("app-") and "processes" not in what]
    assert events == expected


def test_killed_instance_processes_nothing_more() -> None:
    schedule = Schedule((Injection("kill-after", "shop", "OffsetCommit", 1),))
    outcome = execute(consuming(commits_first=False), schedule, Options([ExactlyOnce("orders")]))
    assert outcome.error == ""


@pytest.mark.parametrize("kind", ["kill-after", "second-instance", "slow"])
def test_runs_leave_no_objects(kind: str) -> None:
    def loops() -> int:
        gc.collect()
        return sum(isinstance(each, ProcessLoop) for each in gc.get_objects())

    before = loops()
    for _ in range(3):
        execute(consuming(commits_first=False), Schedule((Injection(kind, "shop", "OffsetCommit", 1),)), Options())
    assert loops() == before


def test_no_application_is_restarted_after_the_run() -> None:
    started: list[str] = []

    async def application(name: str) -> None:
        started.append(name)
        try:
            await asyncio.sleep(3600)
        finally:
            await asyncio.sleep(2)

    async def program(run: Run) -> None:
        run.start(lambda: application("cancelled"), "cancelled")
        run.start(lambda: application("other"), "other")
        await asyncio.sleep(1)
        run.processes.cancel("cancelled-1")

    assert execute(program, Schedule(), Options()).error == ""
    assert started == ["cancelled", "other"]


async def _request() -> None:
    """Stand for a request of a client, which takes no time."""
    await asyncio.sleep(0)


async def _ends_in_a_task() -> None:
    await asyncio.wait([asyncio.get_running_loop().create_task(_request())])


async def _never_ends(run: Run) -> None:
    """Retry without a wait, until the coroutine is closed."""

    async def application() -> None:
        while True:
            try:
                while True:
                    await _request()
            except asyncio.CancelledError:
                continue
            finally:
                await _ends_in_a_task()

    run.start(application)
    await asyncio.Event().wait()


async def _is_ended_while_it_closes(run: Run) -> None:
    async def client() -> None:
        try:
            await asyncio.sleep(3600)
        finally:
            try:
                await asyncio.sleep(5)  # longer than the application
            finally:
                await _ends_in_a_task()

    async def application() -> None:
        clients = [asyncio.create_task(client())]
        try:
            await asyncio.wait(clients)
        finally:
            await asyncio.sleep(2)

    run.start(application)
    await asyncio.sleep(1)
    run.processes.cancel("app-1")


@pytest.mark.parametrize("program", [_never_ends, _is_ended_while_it_closes], ids=["never ends", "closes"])
def test_no_warning_is_shown_of_coroutines_that_the_end_of_a_run_has_closed(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sluice.explore.execution._MOST_TURNS", 10_000)
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        execute(program, Schedule(), Options())
    assert [*map(str, shown)] == []


def test_warning_of_the_programs_own_coroutine_is_shown() -> None:
    async def program(run: Run) -> None:
        async def application() -> None:
            _request()  # type: ignore[unused-coroutine]
            await asyncio.Event().wait()

        run.start(application)
        await asyncio.sleep(1)

    with pytest.warns(RuntimeWarning, match="coroutine '_request' was never awaited"):
        execute(program, Schedule(), Options())


def test_a_program_that_lets_no_time_pass_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    async def program(_run: Run) -> None:
        for _ in range(100_000):
            await asyncio.sleep(0)

    monkeypatch.setattr("sluice.explore.execution._MOST_TURNS", 1000)
    assert execute(program, Schedule(), Options()).error.startswith("not done after 1000 event-loop iterations")
