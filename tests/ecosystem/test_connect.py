"""Kafka Connect, standalone and distributed with an exactly-once source, and MirrorMaker 2."""

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread
from time import sleep
from urllib.error import URLError
from urllib.request import Request, urlopen

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.clients.conftest import QUICK_GROUPS
from tests.ecosystem.conftest import Record
from tests.ecosystem.processes import build_folder, committed_values, java, properties, running, write
from tests.support.broker_process import BrokerProcess, overrides, running_broker
from tests.support.ports import free_ports
from tools.clients.built import SOURCES

pytestmark = [pytest.mark.tools, pytest.mark.timeout(900)]
VERSION = SOURCES["kafka-connect"].variant
SMALL = ("offsets.topic.num.partitions=3", "transaction.state.log.num.partitions=3")
STRING = "org.apache.kafka.connect.storage.StringConverter"
LINES = 300


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    with running_broker(tmp_path / "broker", *overrides(*QUICK_GROUPS, *SMALL)) as process:
        yield process
        assert " ERROR " not in process.log_text()


def class_path() -> str:
    return f"{build_folder('kafka-connect')}/lib/*"


def request(port: int, path: str, body: object = None) -> object:
    """Return the response of a worker, or None if it does not accept connections yet or rebalances."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"content-type": "application/json"}
    try:
        with urlopen(Request(f"http://127.0.0.1:{port}{path}", data, headers), timeout=60) as response:
            return json.load(response)
    except (URLError, ConnectionError):
        return None


def append_slowly(file: Path, lines: list[str]) -> None:
    with file.open("a", buffering=1) as opened:
        for line in lines:
            opened.write(f"{line}\n")
            sleep(0.05)


def test_connect_standalone(broker: BrokerProcess, tmp_path: Path, record: Record) -> None:
    record("Kafka Connect, standalone", VERSION, "a file source and a file sink")
    source, sink = tmp_path / "in.txt", tmp_path / "out.txt"
    lines = [f"line {number}" for number in range(LINES)]
    source.write_text("".join(f"{line}\n" for line in lines))
    files = [
        properties(
            tmp_path / "worker.properties", bootstrap_servers=broker.bootstrap, key_converter=STRING,
            value_converter=STRING, offset_storage_file_filename=tmp_path / "offsets", offset_flush_interval_ms=500,
            listeners=f"http://127.0.0.1:{free_ports(1)[0]}", plugin_discovery="only_scan",
        ),
        properties(tmp_path / "source.properties", name="source", connector_class="FileStreamSource", topic="lines",
                   file=source),
        properties(tmp_path / "sink.properties", name="sink", connector_class="FileStreamSink", topics="lines",
                   file=sink),
    ]  # fmt: skip
    command = java(class_path(), "org.apache.kafka.connect.cli.ConnectStandalone", *map(str, files))
    with running(command, tmp_path / "connect") as connect:
        connect.wait_until(lambda: sink.exists() and sink.read_text().count("\n") >= LINES, "the lines in the sink")
    assert sink.read_text().splitlines() == lines


def test_connect_distributed_with_an_exactly_once_source_and_a_killed_worker(
    broker: BrokerProcess, tmp_path: Path, record: Record
) -> None:
    record("Kafka Connect, distributed", VERSION, "an exactly-once source, whose worker is killed")
    source = tmp_path / "in.txt"
    source.touch()
    lines = [f"line {number}" for number in range(LINES)]
    ports, workers = free_ports(2), []
    for port in ports:
        file = properties(
            tmp_path / f"worker-{port}.properties", bootstrap_servers=broker.bootstrap, group_id="connect",
            key_converter=STRING, value_converter=STRING, config_storage_topic="configs", status_storage_topic="status",
            offset_storage_topic="offsets", config_storage_replication_factor=1, offset_storage_replication_factor=1,
            status_storage_replication_factor=1, offset_storage_partitions=2, status_storage_partitions=1,
            exactly_once_source_support="enabled", scheduled_rebalance_max_delay_ms=0, session_timeout_ms=6000,
            heartbeat_interval_ms=500, listeners=f"http://127.0.0.1:{port}", plugin_discovery="only_scan",
            offset_flush_interval_ms=500,
        )  # fmt: skip
        command = java(class_path(), "org.apache.kafka.connect.cli.ConnectDistributed", str(file))
        workers.append((command, tmp_path / f"worker-{port}"))
    connector = {
        "name": "source",
        "config": {
            "connector.class": "FileStreamSource", "topic": "lines", "file": str(source), "tasks.max": "1",
            "exactly.once.support": "required",
        },
    }  # fmt: skip

    def state(port: int) -> tuple[str, str]:
        found = request(port, "/connectors/source/status")
        tasks = found["tasks"] if isinstance(found, dict) and found["tasks"] else [{"state": "", "worker_id": ""}]
        return tasks[0]["state"], tasks[0]["worker_id"]

    with running(*workers[0]) as first, running(*workers[1]) as second:
        first.wait_until(lambda: request(ports[0], "/connectors", connector), "the connector")
        first.wait_until(lambda: state(ports[0])[0] == "RUNNING", "its task")
        writer = Thread(target=append_slowly, args=(source, lines))  # about a transaction for each line
        writer.start()
        first.wait_until(lambda: len(committed_values(broker.bootstrap, "lines")) >= LINES // 4, "lines")
        is_first = state(ports[0])[1].endswith(str(ports[0]))
        killed, other, port = (first, second, ports[1]) if is_first else (second, first, ports[0])
        killed.process.kill()
        other.wait_until(lambda: state(port)[0] == "RUNNING" and state(port)[1].endswith(str(port)), "the moved task")
        writer.join()
        other.wait_until(lambda: len(committed_values(broker.bootstrap, "lines")) >= LINES, "all lines")
    assert committed_values(broker.bootstrap, "lines") == lines


def test_mirror_maker_copies_topics_and_offsets_of_groups(
    broker: BrokerProcess, tmp_path: Path, record: Record
) -> None:
    record("MirrorMaker 2", VERSION, "records and committed offsets copied between two clusters")
    values = [f"order {number}" for number in range(LINES)]
    write(broker.bootstrap, "orders", values)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "shop", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    assert len(consumer.consume(LINES, 60)) == LINES
    consumer.commit(asynchronous=False)
    consumer.close()
    with running_broker(tmp_path / "other", *overrides(*QUICK_GROUPS, *SMALL)) as other:
        file = tmp_path / "mm2.properties"
        one = {"replication.factor": 1, "refresh.topics.interval.seconds": 1, "refresh.groups.interval.seconds": 1,
               "emit.checkpoints.interval.seconds": 1, "sync.group.offsets.interval.seconds": 1,
               "sync.group.offsets.enabled": "true", "checkpoints.topic.replication.factor": 1,
               "heartbeats.topic.replication.factor": 1, "offset-syncs.topic.replication.factor": 1,
               "offset.storage.replication.factor": 1, "status.storage.replication.factor": 1,
               "config.storage.replication.factor": 1, "offset.lag.max": 0, "topics": "orders", "groups": "shop",
               "clusters": "a, b", "a.bootstrap.servers": broker.bootstrap, "b.bootstrap.servers": other.bootstrap,
               "a->b.enabled": "true", "b->a.enabled": "false", "dedicated.mode.enable.internal.rest": "false",
               "emit.heartbeats.enabled": "true"}  # fmt: skip
        file.write_text("".join(f"{name} = {value}\n" for name, value in one.items()))
        command = java(class_path(), "org.apache.kafka.connect.mirror.MirrorMaker", str(file))
        copied = Consumer({"bootstrap.servers": other.bootstrap, "group.id": "shop", "auto.offset.reset": "error"})

        def offset() -> int:
            return copied.committed([TopicPartition("a.orders", 0)], 60)[0].offset

        with closing(copied), running(command, tmp_path / "mirror") as mirror:
            topics = copied.list_topics
            mirror.wait_until(lambda: "a.orders" in topics(timeout=60).topics, "the topic")
            mirror.wait_until(lambda: len(committed_values(other.bootstrap, "a.orders")) >= LINES, "the records")
            mirror.wait_until(lambda: offset() == LINES, "the offset of the group")
            mirror.wait_until(lambda: committed_values(other.bootstrap, "heartbeats"), "heartbeats")
        assert committed_values(other.bootstrap, "a.orders") == values
        assert " ERROR " not in other.log_text()
