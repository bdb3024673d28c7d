"""Stream processors in Python read a topic and write another."""

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.clients.conftest import QUICK_GROUPS
from tests.ecosystem.conftest import Record
from tests.ecosystem.processes import build_folder, committed_values, running, write
from tests.support.broker_process import overrides, running_broker

pytestmark = [pytest.mark.tools, pytest.mark.timeout(900)]
RECORDS = 400
PROGRAMS = Path(__file__).parent / "programs"


class Framework(NamedTuple):
    """A framework, its distribution, and what its program shows."""

    name: str
    distribution: str
    shown: str
    is_killed: bool = False  # in the middle of its work, and started again


FRAMEWORKS = {
    "faststream": Framework("FastStream", "faststream", "a subscriber and a publisher (aiokafka)"),
    "quixstreams": Framework("Quix Streams", "quixstreams", "exactly-once processing, killed and restarted", True),
    "bytewax": Framework("Bytewax", "bytewax", "a Kafka source and a Kafka sink"),
    "faust": Framework("faust-streaming", "faust-streaming", "an agent, and a table with a changelog topic"),
}


def version_of(python: Path, distribution: str) -> str:
    code = f"import importlib.metadata as found; print(found.version({distribution!r}))"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("program", FRAMEWORKS)
def test_framework_copies_a_topic(program: str, tmp_path: Path, record: Record) -> None:
    framework = FRAMEWORKS[program]
    python = build_folder("python-tools") / "venv" / "bin" / "python"
    record(framework.name, version_of(python, framework.distribution), framework.shown)
    values = [f"order {number}" for number in range(RECORDS)]
    properties = overrides(*QUICK_GROUPS, "group.min.session.timeout.ms=1000")
    with running_broker(tmp_path / "broker", *properties) as broker:
        write(broker.bootstrap, "in", values)
        command = [str(python), str(PROGRAMS / f"with_{program}.py"), broker.bootstrap, "in", "out", str(tmp_path)]

        def written() -> int:
            return len(committed_values(broker.bootstrap, "out"))

        if framework.is_killed:
            with running(command, tmp_path / "first") as first:
                first.wait_until(lambda: written() >= RECORDS // 4, "records")
            assert written() < RECORDS
        with running(command, tmp_path / "log") as started:
            started.wait_until(lambda: written() >= RECORDS or started.process.poll() == 0, "all records")
        assert committed_values(broker.bootstrap, "out") == [value.upper() for value in values]
        assert " ERROR " not in broker.log_text()
