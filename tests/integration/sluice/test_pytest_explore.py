"""The pytest plugin's mark `kafka_explore`."""

import pytest

from tests.support import nested_pytest

pytest_plugins = ["pytester"]

TESTS = """
    import asyncio
    from contextlib import suppress

    import pytest

    from sluice.client.consumer import Consumer
    from sluice.client.errors import KafkaException
    from sluice.explore import AtLeastOnce

    explored = pytest.mark.kafka_explore(runs=60, invariants=[AtLeastOnce("orders")])

    async def orders_are_processed(run, *, commits_first):
        broker = run.broker
        await broker.cluster.create_topic("orders")
        await broker.client().send("orders", *map(str, range(4)))

        async def commit(consumer):
            with suppress(KafkaException):  # its successor commits
                await consumer.commit()

        async def application():
            config = {"bootstrap.servers": broker.bootstrap, "client.id": "shop", "group.id": "shop",
                      "auto.offset.reset": "earliest", "enable.auto.commit": False, "max.poll.records": 1}
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
        await run.wait_for(lambda: ("orders", 0, 3) in run.processed_records)

    @explored
    async def test_commits_first(kafka_run):
        await orders_are_processed(kafka_run, commits_first=True)

    @pytest.mark.kafka_explore(runs=15, invariants=[AtLeastOnce("orders")])
    async def test_commits_last(kafka_run, tmp_path):
        assert tmp_path.exists()
        await orders_are_processed(kafka_run, commits_first=False)

    @pytest.mark.kafka_explore(replay=["kill-after shop OffsetCommit 1"], invariants=[AtLeastOnce("orders")])
    async def test_repeated(kafka_run):
        await orders_are_processed(kafka_run, commits_first=True)

    @pytest.mark.kafka_explore(replay=["kill-after shop OffsetCommit 1"], invariants=[AtLeastOnce("orders")])
    async def test_repeated_and_fixed(kafka_run):
        await orders_are_processed(kafka_run, commits_first=False)
"""
WRONG = """
    import pytest

    @pytest.mark.kafka_explore(rins=3)
    async def test_option(kafka_run): ...

    @pytest.mark.kafka_explore(3)
    async def test_argument(kafka_run): ...

    @pytest.mark.kafka_explore
    def test_no_coroutine(kafka_run): ...

    @pytest.mark.kafka_explore
    async def test_no_run(): ...

    @pytest.mark.kafka_explore(order=3)
    async def test_order(kafka_run): ...

    @pytest.mark.kafka_explore(replay=["later shop Fetch 1"])
    async def test_injection(kafka_run): ...

    def test_no_mark(kafka_run): ...
"""


def test_a_bug_is_found_and_repeated(pytester: pytest.Pytester) -> None:
    result = nested_pytest.run(pytester, TESTS)
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(
        [
            "kafka_explore: 1 failure breaks the program (*",
            "  OffsetCommit request 1 of shop *",
            "then: *",
            "a test that repeats this run without a search:",
            "async def test_commits_first_after_*(kafka_run):",
        ]
    )


def test_runs_and_processes_are_set_by_options(pytester: pytest.Pytester) -> None:
    options = ("--kafka-explore-runs=1", "--kafka-explore-jobs=2", "-k", "commits")
    nested_pytest.run(pytester, TESTS, *options).assert_outcomes(passed=2)


def test_wrong_marks(pytester: pytest.Pytester) -> None:
    result = nested_pytest.run(pytester, WRONG)
    result.assert_outcomes(failed=6, errors=1)
    result.stdout.fnmatch_lines_random(
        [
            "kafka_explore: rins: unknown argument; expected one of runs, *",
            "kafka_explore: expected NAME=VALUE, got 3",
            "kafka_explore: expected `async def test_no_coroutine(kafka_run)`",
            "kafka_explore: expected `async def test_no_run(kafka_run)`",
            "kafka_explore: order: only with replay",
            "kafka_explore: replay: expected one of response-lost, *, got later",
            "kafka_run: only with @pytest.mark.kafka_explore",
        ]
    )
