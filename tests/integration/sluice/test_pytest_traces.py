"""The pytest plugin's traces: `--kafka-trace`."""

import re
from pathlib import Path
from textwrap import dedent

import pytest

from sluice.embedded.traces import of_broker
from tests.support import nested_pytest
from tests.support.nested_pytest import WITHOUT
from tests.support.traces import read_trace

pytest_plugins = ["pytester"]


def run(pytester: pytest.Pytester, code: str, *arguments: str) -> pytest.RunResult:
    """Run tests with their temporary folders in `base`."""
    return nested_pytest.run(pytester, code, "--basetemp=base", *arguments)


def traces(pytester: pytest.Pytester, folder: str = "base/sluice-traces") -> list[str]:
    return sorted(path.name for path in (pytester.path / folder).glob("*"))


TESTS = """
    import asyncio
    import logging

    import pytest
    from sluice import Broker, SyncBroker

    def send(broker):
        broker.client("shop").send("orders", b"one pizza")

    def test_of_a_broker(kafka_broker):
        send(kafka_broker)
        assert False

    def test_of_the_session(kafka_broker_session):
        send(kafka_broker_session)
        assert False

    def test_of_two_clusters(kafka_cluster_factory):
        send(kafka_cluster_factory())
        send(kafka_cluster_factory(brokers=2))
        assert False

    def test_of_its_own_broker():
        with SyncBroker() as broker:
            send(broker)
        assert False

    def test_of_a_coroutine():
        async def main():
            async with Broker() as broker:
                await broker.client("shop").send("orders", b"one pizza")
                assert False
        asyncio.run(main())

    @pytest.fixture(scope="module")
    def shared():
        with SyncBroker() as broker:
            yield broker

    def test_of_a_module(shared):
        send(shared)
        assert False

    def test_unused(shared): assert False

    @pytest.fixture
    def broken(kafka_broker):
        send(kafka_broker)
        raise ValueError

    def test_setup(broken): ...

    @pytest.fixture
    def left_broken(kafka_broker):
        yield kafka_broker
        raise ValueError

    def test_teardown(left_broken): send(left_broken)

    def test_passes(kafka_broker): send(kafka_broker)

    def test_passes_in_the_session(kafka_broker_session): send(kafka_broker_session)

    @pytest.mark.xfail
    def test_expected(kafka_broker):
        send(kafka_broker)
        assert False

    def test_skips(kafka_broker):
        send(kafka_broker)
        pytest.skip("later")

    def test_without_a_broker(): assert False
"""
FAILED = [
    f"test_shop.py-test_{name}.html"
    for name in ("of_a_broker", "of_a_coroutine", "of_a_module", "of_its_own_broker", "of_the_session",
                 "of_two_clusters", "setup", "teardown")
]  # fmt: skip
OUTCOMES = {"failed": 8, "passed": 3, "errors": 2, "xfailed": 1, "skipped": 1}


def test_each_failed_test_with_events_has_a_trace(pytester: pytest.Pytester) -> None:
    result = run(pytester, TESTS)
    result.assert_outcomes(**OUTCOMES)
    assert traces(pytester) == FAILED
    named = [Path(line).name for line in result.outlines if line.endswith(".html")]
    assert sorted(named) == FAILED


def test_with_on_tests_that_pass_have_traces(pytester: pytest.Pytester) -> None:
    run(pytester, TESTS, "--kafka-trace=on").assert_outcomes(**OUTCOMES)
    passed = [f"test_shop.py-test_{name}.passed.html" for name in ("passes", "passes_in_the_session")]
    assert traces(pytester) == sorted([*FAILED, *passed])


def test_with_off_no_test_has_a_trace(pytester: pytest.Pytester) -> None:
    result = run(pytester, TESTS, "--kafka-trace=off")
    result.assert_outcomes(**OUTCOMES)
    assert traces(pytester) == []
    result.stdout.no_fnmatch_line("*sluice trace*")


FAILING = """
    import logging

    def test_fails(kafka_broker):
        logging.getLogger("shop").warning("sends %s", "one pizza")
        kafka_broker.client("shop").send("orders", b"one pizza")
        check(kafka_broker)

    def check(broker):
        broker.assert_requests("Fetch", client_id="shop")
"""


@pytest.mark.parametrize("arguments", [["--kafka-trace=out/traces"], ["--kafka-trace-dir=out/traces"]], ids=str)
def test_folder_can_be_chosen(pytester: pytest.Pytester, arguments: list[str]) -> None:
    result = run(pytester, FAILING, *arguments)
    result.assert_outcomes(failed=1)
    assert traces(pytester, "out/traces") == ["test_shop.py-test_fails.html"]
    named = [line for line in result.outlines if line.endswith(".html")]
    assert named == [str(pytester.path / "out/traces/test_shop.py-test_fails.html")]


WRONG = {
    "no mode": (["--kafka-trace=onn"], "--kafka-trace: expected retain-on-failure, on, off or a folder*, got onn"),
    "two folders": (["--kafka-trace=./a", "--kafka-trace-dir=b"], "--kafka-trace: expected *, got ./a"),
}


@pytest.mark.parametrize(("arguments", "message"), WRONG.values(), ids=WRONG)
def test_wrong_option_is_an_error_in_one_line(pytester: pytest.Pytester, arguments: list[str], message: str) -> None:
    result = run(pytester, FAILING, *arguments)
    assert result.ret is pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_trace_has_the_phases_the_log_and_the_failed_line(pytester: pytest.Pytester) -> None:
    run(pytester, FAILING).assert_outcomes(failed=1)
    trace = read_trace(pytester.path / "base/sluice-traces/test_shop.py-test_fails.html")
    assert (trace.title, trace.result) == ("test_shop.py::test_fails", "failed")
    assert [(phase.name, phase.result) for phase in trace.phases] == [
        ("setup", "passed"),
        ("call", "failed"),
        ("teardown", "passed"),
    ]
    setup, call, teardown = trace.phases
    assert setup.start <= setup.end <= call.start < call.end <= teardown.start <= teardown.end
    ((at, *line),) = trace.logs
    assert line == ["WARNING", "shop", "sends one pizza"]
    first_request = min(trace.bars.start)
    assert call.start <= at <= first_request + 1000, "the log line precedes the requests, at the clock's resolution"
    failure = trace.failure
    assert failure is not None
    assert failure.text.startswith("AssertionError: expected: 1 or more Fetch requests of client shop\n")
    assert (Path(failure.file).name, failure.line) == ("test_shop.py", 9)
    assert failure.at == call.end


OTHERS = """
    import unittest

    import pytest
    from sluice.kafka_test_case import KafkaTestCase

    def test_subtests(kafka_broker, subtests):
        for number in range(2):
            with subtests.test(number=number):
                kafka_broker.client("shop").send("orders", b"one pizza")
                assert number == 1

    class TestUnit(KafkaTestCase):
        def test_it(self):
            for number in range(2):
                with self.subTest(number=number):
                    self.kafka.client("shop").send("orders", b"one pizza")
                    self.assertEqual(number, 1)

    @pytest.mark.xfail(strict=True)
    def test_passes(kafka_broker):
        kafka_broker.client("shop").send("orders", b"one pizza")
"""
FAILURES = {
    "test_subtests": ("AssertionError: assert 0 == 1", 10),
    "TestUnit-test_it": ("AssertionError: 0 != 1", 17),
    "test_passes": ("[XPASS(strict)] ", -1),
}


def test_other_failures_have_traces(pytester: pytest.Pytester) -> None:
    run(pytester, OTHERS)
    for name, (text, line) in FAILURES.items():
        trace = read_trace(pytester.path / f"base/sluice-traces/test_shop.py-{name}.html")
        assert trace.result == "failed"
        assert trace.failure is not None
        assert (trace.failure.text.partition("\n")[0], trace.failure.line) == (text, line)
        assert [phase.name for phase in trace.phases][-2:] == ["call", "teardown"]
        assert trace.end < 60e6


def test_trace_of_the_session_broker_has_the_events_of_its_test(pytester: pytest.Pytester) -> None:
    code = """
        def test_passes(kafka_broker_session):
            kafka_broker_session.client("first").send("orders", b"one pizza")

        def test_fails(kafka_broker_session):
            kafka_broker_session.client("second").send("orders", b"one pizza")
            assert False
    """
    run(pytester, code).assert_outcomes(passed=1, failed=1)
    trace = read_trace(pytester.path / "base/sluice-traces/test_shop.py-test_fails.html")
    assert {lane.owner for lane in trace.lanes if lane.group == "client"} == {"second"}


def test_trace_in_virtual_time_has_no_phases(pytester: pytest.Pytester) -> None:
    code = """
        import asyncio
        from sluice import Broker, testing

        def test_fails():
            async def main():
                async with Broker() as broker:
                    await asyncio.sleep(3600)
                    await broker.client("shop").send("orders", b"one pizza")
                    assert False
            testing.run(main())
    """
    run(pytester, code).assert_outcomes(failed=1)
    trace = read_trace(pytester.path / "base/sluice-traces/test_shop.py-test_fails.html")
    assert trace.phases == []
    assert trace.end < 3600e6
    assert trace.failure is not None
    assert trace.failure.at == trace.end


def test_failed_test_is_compared_with_its_last_run_that_passed(pytester: pytest.Pytester) -> None:
    code = """
        import os

        def test_it(kafka_broker):
            kafka_broker.client("shop").send("orders", b"one pizza")
            assert "FAIL" not in os.environ
    """
    arguments = ["--kafka-trace=on", "--kafka-trace-dir=traces"]
    run(pytester, code, *arguments).assert_outcomes(passed=1)
    pytester.makeconftest("import os\nos.environ['FAIL'] = ''\ndef pytest_unconfigure(): del os.environ['FAIL']\n")
    run(pytester, code, *arguments).assert_outcomes(failed=1)
    trace = read_trace(pytester.path / "traces/test_shop.py-test_it.html")
    assert trace.compare is not None
    assert trace.compare.other.result == "passed"


def test_names_of_files_are_safe_and_distinct(pytester: pytest.Pytester) -> None:
    code = """
        import pytest

        @pytest.mark.parametrize("value", ["a/b", "a b", "../..", "é:*?<|>", "", "x" * 500, "x" * 501])
        def test_it(kafka_broker, value):
            kafka_broker.client("shop").send("orders", b"one pizza")
            assert False
    """
    run(pytester, code).assert_outcomes(failed=7)
    found = traces(pytester)
    assert len(found) == 7
    assert [
        name for name in found if not re.fullmatch(r"test_shop\.py-test_it-[A-Za-z0-9_.-]{0,120}\.html", name)
    ] == []


NOT_WRITTEN = {
    "the folder is a file": (["--kafka-trace-dir=file"], "cannot write the trace: File exists"),
    "no temporary folders": (["-pno:tmpdir"], "no folder for the trace: AttributeError*; set --kafka-trace-dir"),
}


@pytest.mark.parametrize(("arguments", "message"), NOT_WRITTEN.values(), ids=NOT_WRITTEN)
def test_trace_that_cannot_be_written_is_one_line(
    pytester: pytest.Pytester, arguments: list[str], message: str
) -> None:
    (pytester.path / "file").write_text("")
    result = run(pytester, FAILING, *arguments)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["E *expected: 1 or more Fetch requests*", "*- sluice trace -*", f"*{message}"])


def test_internal_error_of_a_trace_does_not_change_the_result(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise KeyError("lane")

    monkeypatch.setattr(of_broker, "write_file", fail)
    result = run(pytester, FAILING, "--kafka-trace=on")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*cannot write the trace: KeyError('lane')"])


def test_traces_of_several_processes(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_shop=dedent(TESTS))
    result = pytester.runpytest_subprocess("-n", "2", "--kafka-trace-dir=traces", *WITHOUT)
    result.assert_outcomes(**OUTCOMES)
    assert traces(pytester, "traces") == FAILED
    assert sorted(Path(line).name for line in result.outlines if line.endswith(".html")) == FAILED


def test_passing_tests_import_nothing_of_traces(pytester: pytest.Pytester) -> None:
    code = """
        import sys

        def test_passes(kafka_broker):
            kafka_broker.client("shop").send("orders", b"one pizza")

        def test_it_has_passed():
            assert not [name for name in sys.modules if name.startswith(("sluice.trace", "sluice.lint"))]
    """
    pytester.makepyfile(dedent(code))
    pytester.runpytest_subprocess(*WITHOUT).assert_outcomes(passed=2)


def test_no_journal_is_kept_after_its_test(pytester: pytest.Pytester) -> None:
    code = """
        import gc
        from weakref import ref

        import pytest
        from sluice import SyncBroker

        journals = []

        def use(broker):
            broker.client("shop").send("orders", b"one pizza")
            journals.append(ref(broker._target._server.cluster.journal))

        @pytest.mark.parametrize("number", range(2))
        def test_each(kafka_broker, kafka_broker_session, kafka_cluster_factory, number):
            use(kafka_broker)
            use(kafka_broker_session)
            use(kafka_cluster_factory())
            with SyncBroker() as broker:
                use(broker)

        def test_another(): ...

        def test_they_are_gone():
            gc.collect()
            assert [journal() for journal in journals] == [None] * 8
    """
    run(pytester, code, "--kafka-trace=on").assert_outcomes(passed=4)
