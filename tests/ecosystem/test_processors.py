"""Flink with an exactly-once sink, Apicurio's registry on sluice, and rsyslog."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.clients.conftest import QUICK_GROUPS
from tests.ecosystem.conftest import Record
from tests.ecosystem.processes import Running, build_folder, committed_values, java, running, write
from tests.support import skips
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.ports import free_ports
from tools.clients.built import SOURCES

pytestmark = [pytest.mark.tools, pytest.mark.timeout(900)]
RECORDS = 300


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path / "broker", *overrides(*QUICK_GROUPS)) as process:
        yield process
        assert " ERROR " not in process.log_text()


def test_flink_writes_exactly_once_across_a_failure(broker: BrokerProcess, tmp_path: Path, record: Record) -> None:
    folder = build_folder("flink")
    record("Flink", SOURCES["flink"].variant, "a Kafka source and an exactly-once sink, with a failure and a restart")
    values = [f"order {number}" for number in range(RECORDS)]
    write(broker.bootstrap, "in", values)
    command = java(f"{folder}/classes:{folder}/lib/*", "Copy", broker.bootstrap, "in", "out")
    with running(command, tmp_path / "flink") as flink:
        flink.wait()
        assert int(re.findall(r"^records seen: (\d+)", flink.log.read_text(), re.MULTILINE)[0]) > RECORDS, (
            "no record was processed again"
        )
    assert committed_values(broker.bootstrap, "out") == values


def test_registry_keeps_schemas_of_avro_records(broker: BrokerProcess, tmp_path: Path, record: Record) -> None:
    folder = build_folder("apicurio")
    shown = "`kafkasql` storage, its Avro serializer, and schemas after a restart"
    record("Apicurio Registry", SOURCES["apicurio"].variant, shown)
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/apis/registry/v3"
    env = {
        "APICURIO_STORAGE_KIND": "kafkasql",
        "APICURIO_KAFKASQL_BOOTSTRAP_SERVERS": broker.bootstrap,
        "QUARKUS_HTTP_PORT": str(port),
        "QUARKUS_HTTP_HOST": "127.0.0.1",
        "QUARKUS_MANAGEMENT_PORT": "0",
    }
    registry = java("", "-jar", str(folder / "registry" / "quarkus-run.jar"), version=21)
    program = java(f"{folder}/classes:{folder}/lib/*", "Orders")

    def is_ready(started: Running) -> bool:
        try:
            with urlopen(f"{url}/search/artifacts", timeout=10) as response:
                return bool(response.status == 200)
        except OSError:
            return False

    for step in ("write", "read"):  # each with a new registry, which reads its schemas from the topic
        with running(registry, tmp_path / f"registry-{step}", env) as started:
            started.wait_until(lambda: is_ready(started), "the registry")
            done = subprocess.run([*program, step, broker.bootstrap, url], capture_output=True, text=True, timeout=120)
            assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [f'{{"number": {number}, "dish": "pizza"}}' for number in range(3)]


def test_rsyslog_writes_lines_of_a_file(broker: BrokerProcess, tmp_path: Path, record: Record) -> None:
    rsyslogd = shutil.which("rsyslogd", path="/usr/sbin:/usr/bin:/sbin")
    if rsyslogd is None or not list(Path("/usr/lib").glob("**/rsyslog/omkafka.so")):
        pytest.skip(skips.program("rsyslogd with omkafka", "apt-get install rsyslog-kafka"))
    version = subprocess.run([rsyslogd, "-v"], capture_output=True, text=True, check=True).stdout.split()[1]
    record("rsyslog, omkafka", version, "lines of a file")
    lines, log = [f"line {number}" for number in range(RECORDS)], tmp_path / "app.log"
    log.write_text("".join(f"{line}\n" for line in lines))
    settings = tmp_path / "rsyslog.conf"
    settings.write_text(f"""
global(workDirectory="{tmp_path}")
module(load="imfile" mode="polling" pollingInterval="1")
module(load="omkafka")
template(name="line" type="string" string="%msg%")
input(type="imfile" file="{log}" tag="app")
action(type="omkafka" broker=["{broker.bootstrap}"] topic="lines" template="line" confParam=["acks=all"])
""")
    with running([rsyslogd, "-n", "-f", str(settings), "-i", str(tmp_path / "pid")], tmp_path / "rsyslog") as started:
        started.wait_until(lambda: len(committed_values(broker.bootstrap, "lines")) >= RECORDS, "all lines")
    assert committed_values(broker.bootstrap, "lines") == lines
