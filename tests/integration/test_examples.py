"""Each program in examples/ tells its story without an argument, and reports an address that no broker answers."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from socket import create_server

import pytest

from sluice.embedded.options import UPSTREAM, has_upstream
from tests.support.broker_process import CLEAN_ENVIRONMENT
from tests.support.ports import refusing_address

EXAMPLES = Path(__file__).parents[2] / "examples"
# Program -> lines of its story, in this order.
STORIES = {
    "producer": (r"10 MB after +\d\.\d s", r"15 MB after +[1-9]\d?\.\d s"),
    "consumer": (r" 2\.0 MB after +\d\.\d s", r"25 records, 2\.5 MB"),
    "reference_producer": ("0 is at examples-0 0", "-- the broker stops", "11 is at examples-0 11"),
    "reference_consumer": ("assigned examples-0", "-- the broker stops", "revoked examples-0", r"examples-0 11: b'11'"),
    "word_count": ("pizza 1", "-- the broker stops", "-- the broker runs again", "pizza 10", "pasta 5"),
}

Running = dict[str, "subprocess.Popen[str]"]


def start(program: str, *arguments: str) -> "subprocess.Popen[str]":
    command = [sys.executable, str(EXAMPLES / f"{program}.py"), *arguments]
    env = {**CLEAN_ENVIRONMENT, UPSTREAM: os.environ.get(UPSTREAM, "")}
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env, cwd=EXAMPLES.parent
    )


def test_table_has_every_program() -> None:
    # tests/spark/test_examples.py has the stories of Spark's.
    files = {path.stem: path for path in EXAMPLES.glob("*.py") if not path.stem.startswith("spark_")}
    assert {name for name, path in files.items() if '__name__ == "__main__"' in path.read_text()} <= {*STORIES}
    assert {*STORIES} <= files.keys()


@pytest.fixture(scope="module")
def stories() -> Iterator[Running]:
    """Start all programs at once; none in front of a cluster, where they use the same topic."""
    with ExitStack() as ends:
        programs = () if has_upstream() else STORIES
        running = {program: ends.enter_context(start(program)) for program in programs}
        for process in running.values():
            ends.callback(process.kill)
        yield running


@pytest.mark.parametrize("program", STORIES)
def test_program_tells_its_story(program: str, stories: Running) -> None:
    process = stories.get(program) or start(program)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert re.search(".*".join(STORIES[program]), output, re.DOTALL), output


# All programs check the address by own_broker.py.
@pytest.mark.parametrize(
    ("address", "programs"), [("closed", [*STORIES]), ("silent", ["consumer"]), ("invalid", ["consumer"])]
)
def test_address_that_no_broker_answers_is_reported(address: str, programs: list[str]) -> None:
    with create_server(("127.0.0.1", 0)) as silent, refusing_address() as closed:
        silent_address = f"127.0.0.1:{silent.getsockname()[1]}"
        bootstrap = {"closed": closed, "silent": silent_address, "invalid": "127.0.0.1:port"}[address]
        with ExitStack() as ends:
            running = {program: ends.enter_context(start(program, bootstrap)) for program in programs}
            outputs = {program: process.communicate() for program, process in running.items()}
        for program, (output, errors) in outputs.items():
            assert (output, running[program].returncode) == ("", 1), program
            assert errors.splitlines()[-1].startswith(f"{bootstrap}: no Kafka broker answers: ")
            assert "Traceback" not in errors
