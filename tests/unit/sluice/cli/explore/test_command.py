"""`sluice explore`: its report, the test and the trace that it writes, wrong input, and its exit codes."""

import json
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from textwrap import dedent

import pytest
from click.testing import CliRunner, Result

from sluice.cli.explore import command
from sluice.cli.main import cli
from sluice.spark import session
from sluice.trace.stored import read_trace

# A consumer that commits each record before it processes it.
ORDERS = """
import asyncio
from contextlib import suppress

import pytest

from sluice.client.consumer import Consumer
from sluice.client.errors import KafkaException
from sluice.explore import AtLeastOnce

@pytest.mark.kafka_explore(invariants=[AtLeastOnce("orders")])
async def test_orders(kafka_run):
    broker = kafka_run.broker
    await broker.cluster.create_topic("orders")
    await broker.client().send("orders", *"0123")

    async def application():
        config = {"bootstrap.servers": broker.bootstrap, "client.id": "shop", "group.id": "shop",
                  "auto.offset.reset": "earliest", "enable.auto.commit": False, "max.poll.records": 1}
        async with Consumer(config) as consumer:
            consumer.subscribe(["orders"])
            while True:
                for record in await consumer.poll(100):
                    with suppress(KafkaException):
                        await consumer.commit()
                    await asyncio.sleep(0.01)
                    kafka_run.processed(record)

    kafka_run.start(application)
    await kafka_run.wait_for(lambda: ("orders", 0, 3) in kafka_run.processed_records)
"""
HEALTHY = """
from sluice.client.producer import Producer

async def test_orders(kafka_run):
    async def application():
        async with Producer({"bootstrap.servers": kafka_run.broker.bootstrap, "client.id": "shop"}) as producer:
            await producer.send("orders", "one pizza")
        done.append(1)

    done = []
    kafka_run.start(application)
    await kafka_run.wait_for(lambda: done)
"""
NAME = "explored_orders"  # of the file; no other test has a module of this name


@pytest.fixture(autouse=True)
def imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the modules and the folder that a command has imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if name.startswith("explored"):
            del sys.modules[name]


def run(code: str, *args: str, test: str = "test_orders") -> Result:
    Path(f"{NAME}.py").write_text(dedent(code), encoding="utf-8")
    sys.modules.pop(NAME, None)  # an earlier file of this test
    return CliRunner().invoke(cli, ["explore", f"{NAME}.py::{test}", "--trace", "traces", *args])


def test_failure_is_printed_and_written() -> None:
    found = run(ORDERS, "--write-test", "test_new.py", "--seed", "3")
    assert found.exit_code == 1, found.output
    lines = found.stdout.splitlines()
    assert lines[0].startswith("1 failure breaks the program (")
    assert lines[0].endswith("seed 3):")
    assert any(line.startswith("then: AtLeastOnce: orders-0 offset ") for line in lines)
    assert "async def test_orders_after_" in found.stdout
    assert lines[-2:] == ["test: test_new.py", f"trace: traces/{NAME}.py-test_orders.html"]
    assert f"from {NAME} import test_orders as explored\n" in Path("test_new.py").read_text(encoding="utf-8")
    trace = read_trace(Path("traces", f"{NAME}.py-test_orders.html"))
    assert any("OffsetCommit request 1 of shop" in text for *_, text in trace.logs)


def test_program_without_a_bug_is_a_success() -> None:
    found = run(HEALTHY, "--runs", "3")
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.startswith("no failure found: 3 runs, ")


def test_mark_that_repeats_a_run_is_no_search() -> None:
    found = run(ORDERS.replace("explore(", "explore(replay=['kill-after shop OffsetCommit 1'], "))
    assert found.exit_code == 1
    assert found.stdout.startswith("1 failure breaks the program:\n")
    assert "a test that repeats" not in found.stdout


TRIED = ("runs", "requests", "states", "missed", "pairs_in_both_orders", "pairs_in_one_order")


def test_report_as_json() -> None:
    found = run(ORDERS, "--json", "--write-test", "test_new.py")
    assert found.exit_code == 1
    shown = json.loads(found.stdout)
    assert list(shown) == [*TRIED, "seed", "found", "test", "trace"]
    assert shown["found"]["error"].startswith("AtLeastOnce: ")
    assert " OffsetCommit 1" in shown["found"]["failures"][0]["replay"]
    assert json.loads(run(HEALTHY, "--json", "--runs", "2", test="test_orders").stdout)["found"] is None


def test_search_ends_at_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "monotonic_s", iter(range(100)).__next__)
    found = run(HEALTHY, "--time-limit", "2s")
    assert found.exit_code == 0, found.output
    # After the first run and the second generation, whose last runs read no time.
    assert found.stdout.startswith("no failure found: 4 runs, ")


def test_case_of_a_parametrized_test_is_explored_and_repeated() -> None:
    code = (
        ORDERS.replace("(kafka_run)", "(kafka_run, topic)")
        .replace('"orders"', "topic")
        .replace("[AtLeastOnce(topic)]", "[]")
    )
    code = code.replace("async def test", '@pytest.mark.parametrize("topic", ["other", "orders"])\nasync def test', 1)
    code = code.replace("invariants=[]", 'invariants=[AtLeastOnce("orders")]')
    found = run(code, "--write-test", "test_found.py", test="test_orders[orders]")
    assert found.exit_code == 1, found.output
    assert 'await explored(kafka_run, topic="orders")' in Path("test_found.py").read_text(encoding="utf-8")


# -- wrong input -------------------------------------------------------------------------------------------------------

RUN = "async def test_orders(kafka_run): ...\n"
MARK = "import pytest\n@pytest.mark.kafka_explore({})\n" + RUN
FILES = {
    "no such test": ("async def test_order(kafka_run): ...", "{}::test_orders: unknown test; expected one of "),
    "no test": ("", "{}::test_orders: unknown test; expected `async def test_orders(kafka_run)` in this file"),
    "no function": ("test_orders = 3", "{}::test_orders: unknown test; expected `async def test_orders(kafka_run)`"),
    "no coroutine": ("def test_orders(kafka_run): ...", "{}::test_orders: expected `async def test_orders(kafka_run)`"),
    "no run": ("async def test_orders(): ...", "{}::test_orders: expected `async def test_orders(kafka_run)`"),
    "another fixture": (
        "async def test_orders(kafka_run, tmp_path): ...",
        "{0}::test_orders: expected the fixture kafka_run only, got tmp_path. To explore a test with other fixtures, "
        "run pytest --kafka-explore-runs=N {0}::test_orders.",
    ),
    "a syntax error": ("\ndef test_orders(:", "{}:2: invalid syntax"),
    "an import that fails": ("\nimport no_such", "{}:2: cannot import: ModuleNotFoundError: No module named 'no_such'"),
    "an error": ("x = 1 / 0", "{}:1: cannot import: ZeroDivisionError: division by zero"),
    "an exit": ("import sys\nsys.exit(3)", "{}:2: cannot import: SystemExit: 3"),
    "a skipped module": (
        "import pytest\npytest.importorskip('no_such')",
        "{}:2: cannot import: Skipped: could not import 'no_such'",
    ),
    "a parametrized test without its case": (
        "import pytest\n@pytest.mark.parametrize('n', [1, 2])\nasync def test_orders(kafka_run, n): ...",
        "{}::test_orders: unknown test; expected one of test_orders[1], test_orders[2]",
    ),
    "a wrong name in the mark": (
        MARK.format("rins=3"),
        "kafka_explore: rins: unknown argument; expected one of runs, ",
    ),
    "a wrong value in the mark": (MARK.format("runs=0"), "kafka_explore: runs: expected an integer of at least 1"),
    "a positional argument in the mark": (MARK.format("3"), "{}::test_orders: expected NAME=VALUE, got 3"),
    "an order without a replay": (MARK.format("order=3"), "kafka_explore: order: only with replay"),
    "a wrong mark of the module": (
        "import pytest\npytestmark = pytest.mark.kafka_explore(brokers=0)\n" + RUN,
        "kafka_explore: brokers: expected an integer of at least 1, got 0",
    ),
    "a wrong failure in the mark": (
        MARK.format("replay=['later shop Fetch 1']"),
        "replay: expected one of response-lost, ",
    ),
}


@pytest.mark.parametrize(("code", "expected"), FILES.values(), ids=FILES)
def test_file_that_cannot_be_explored(code: str, expected: str) -> None:
    assert_usage_error(run(code), expected.format(f"{NAME}.py"))


ARGUMENTS = {
    "no test": (["explored.py"], "FILE::TEST: expected a file and a test, such as test_orders.py"),
    "no file": (["::test_orders"], "FILE::TEST: expected a file and a test, such as "),
    "no such file": (["explored.py::test_orders"], "explored.py: no such file"),
    "a folder": (["explored::test_orders"], "explored: expected a Python file, got explored"),
    "another file": (["explored.txt::test_orders"], "explored.txt: expected a Python file, got explored.txt"),
    "the name of a module": (["json.py::test_orders"], "json.py: cannot import: json is also the name"),
    "no runs": (["a.py::a", "--runs", "0"], "--runs: expected an integer of at least 1, got 0"),
    "a wrong seed": (["a.py::a", "--seed", "x"], "--seed: expected an integer, got x"),
    "no process": (["a.py::a", "--jobs", "0"], "--jobs: expected an integer of at least 1, got 0"),
    "processes and Spark": (["a.py::a", "--jobs", "2", "--spark"], "--jobs and --spark exclude each other"),
    "a property without Spark": (["a.py::a", "--conf", "a=b"], "--conf: only with --spark"),
    "a wrong property": (["a.py::a", "--spark", "--conf", "a"], "--conf: expected KEY=VALUE, such as "),
    "a wrong time": (["a.py::a", "--time-limit", "5"], "--time-limit: expected a time such as 500ms, 10s, 2m or 1h"),
    "no time": (["a.py::a", "--time-limit", "0s"], "--time-limit: expected a time such as 500ms, 10s, 2m or 1h"),
    "a file for traces": (["a.py::a", "--trace", "explored.txt"], "--trace: 'explored.txt' is a file"),
    "a folder for the test": (["a.py::a", "--write-test", "explored"], "--write-test: 'explored' is a directory"),
    "a test that exists": (["a.py::a", "--write-test", "explored.txt"], "explored.txt: exists; expected a new file"),
    "no argument": ([], "FILE::TEST: missing"),
}


@pytest.mark.parametrize(("args", "expected"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_wrong_argument(args: list[str], expected: str) -> None:
    Path("explored").mkdir()
    for name in ("explored.txt", "json.py"):
        Path(name).touch()
    assert_usage_error(CliRunner().invoke(cli, ["explore", *args]), expected)


def assert_usage_error(found: Result, expected: str) -> None:
    assert found.exit_code == 2, found.output
    assert found.stdout == ""
    assert found.stderr.startswith(f"Error: {expected}")
    assert found.stderr.count("\n") == 1


def test_without_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise PackageNotFoundError

    monkeypatch.setattr(session, "version", version)
    found = run(RUN, "--spark")
    assert (found.exit_code, found.stdout) == (1, "")
    assert found.stderr == "Error: PySpark is not installed; run pip install 'kafka-sluice[spark]'\n"


def test_trace_that_cannot_be_written_does_not_hide_the_report() -> None:
    Path("traces").mkdir()
    Path("traces", f"{NAME}.py-test_orders.html").mkdir()
    found = run(ORDERS)
    assert found.exit_code == 1
    assert found.stdout.startswith("1 failure breaks the program (")
    assert "cannot write the trace: Is a directory" in found.stdout
