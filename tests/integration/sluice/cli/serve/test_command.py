"""`sluice serve` as a process: output, shutdown, and start errors."""

import json
import os
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path

import pytest
from click.testing import CliRunner

from sluice.cli.main import cli
from sluice.protocol.apis.create_topics import CreatableTopic, CreateTopicsRequest
from sluice.protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.support import skips
from tests.support.broker_process import CLEAN_ENVIRONMENT, BrokerProcess, overrides, running_broker
from tests.support.records import fetch, produce, produce_of
from tests.support.wire import WireClient


def settings(broker: BrokerProcess, *names: str) -> dict[str, str | None]:
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=list(names))
    with WireClient(broker.bootstrap) as client:
        (result,) = client.call(DescribeConfigsRequest(resources=[resource]), 4).results
    return {config.name: config.value for config in result.configs}


# -- running -----------------------------------------------------------------------------------------------------------


def test_start_loads_no_slow_module_that_it_does_not_need() -> None:
    # Each takes 1 % of a start or more.
    slow = {"cramjam", "crc32c", "prometheus_client", "starlette", "yaml"}
    code = f"import sys, sluice.__main__, sluice.cli.serve.command; print(sys.modules.keys() & {slow})"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "set()"


def test_stdout_has_exactly_one_ready_line(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log") as broker:
        assert broker.first_line.startswith("ready {")
        assert broker.first_line.endswith("}\n")
        ready = json.loads(broker.first_line.removeprefix("ready "))
        host, port = broker.bootstrap.split(":")
        assert host == "127.0.0.1"
        assert int(port) > 0
        assert ready == {
            "bootstrap": broker.bootstrap,
            "brokers": [broker.bootstrap],
            "admin": broker.admin,
            "pid": broker.process.pid,
        }
        with WireClient(broker.bootstrap) as client:
            (node,) = client.call(MetadataRequest(topics=[]), 9).brokers
        assert f"{node.host}:{node.port}" == broker.bootstrap
        assert json.loads(broker.get("/healthz")) == {"status": "ok"}
        exit_code, _, rest = broker.stop()
        assert (exit_code, rest) == (0, "")
        assert "Traceback" not in broker.log_text()


def test_several_brokers_listen_and_form_a_cluster(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log", "--brokers", "3") as broker:
        brokers = json.loads(broker.first_line.removeprefix("ready "))["brokers"]
        assert brokers[0] == broker.bootstrap
        assert len(set(brokers)) == 3
        for address in brokers:
            with WireClient(address) as client:
                nodes = client.call(MetadataRequest(topics=[]), 9).brokers
            assert [f"{node.host}:{node.port}" for node in nodes] == brokers
        exit_code, _, _ = broker.stop()
        assert exit_code == 0


def test_ports_are_free_after_shutdown(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log") as broker:
        ports = broker.bootstrap.rpartition(":")[2], broker.admin.rpartition(":")[2]
        with WireClient(broker.bootstrap):
            broker.stop()
    with running_broker(tmp_path / "log2", "--port", ports[0], "--admin-port", ports[1]) as broker:
        assert broker.bootstrap.endswith(ports[0])


def test_ipv6(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log", "--host", "::1") as broker:
        assert broker.bootstrap.startswith("[::1]:")
        with WireClient(broker.bootstrap) as client:
            assert client.call(MetadataRequest(topics=[]), 9).brokers[0].host == "::1"


def test_seed_makes_topic_ids_reproducible(tmp_path: Path) -> None:
    ids = []
    for seed in ("7", "7", "8"):
        with running_broker(tmp_path / "log", "--seed", seed) as broker, WireClient(broker.bootstrap) as client:
            ids.append(
                client.call(
                    CreateTopicsRequest(topics=[CreatableTopic(name="t", num_partitions=1, replication_factor=1)]), 7
                )
                .topics[0]
                .topic_id
            )
    assert ids[0] == ids[1] != ids[2]


def retransmissions(sock: socket.socket) -> int:
    """Return `tcpi_total_retrans` of Linux's struct tcp_info."""
    (count,) = struct.unpack_from("I", sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104), 100)
    return int(count)


def test_hundreds_of_connections_may_wait_in_the_accept_queue(tmp_path: Path) -> None:
    # With a shorter queue the kernel drops SYN packets, which are retransmitted a second later.
    longest = int(Path("/proc/sys/net/core/somaxconn").read_text()) if sys.platform == "linux" else 128
    if longest < 500:
        pytest.skip(skips.system(f"queue of 500 connections: somaxconn is {longest}"))
    with running_broker(tmp_path / "log") as broker, ExitStack() as stack:
        broker.process.send_signal(signal.SIGSTOP)
        try:
            clients = [stack.enter_context(WireClient(broker.bootstrap)) for _ in range(500)]
            if sys.platform == "linux":
                assert [retransmissions(client.socket) for client in clients] == [0] * 500
        finally:
            broker.process.send_signal(signal.SIGCONT)
        assert clients[-1].call(MetadataRequest(topics=[]), 9).brokers


# -- configuration -----------------------------------------------------------------------------------------------------


def test_override_wins_over_environment_over_file(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\nlog.retention.bytes=2000\nmessage.max.bytes=2000\n")
    env = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_LOG_RETENTION_BYTES": "3000"}
    with running_broker(tmp_path / "log", "--config", str(file), *overrides("num.partitions=4"), env=env) as broker:
        assert settings(broker, "num.partitions", "log.retention.bytes", "message.max.bytes") == {
            "num.partitions": "4",
            "log.retention.bytes": "3000",
            "message.max.bytes": "2000",
        }


def test_configuration_file_of_apache_kafka_is_accepted(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text(
        "process.roles=broker,controller\nnode.id=1\ncontroller.quorum.bootstrap.servers=localhost:9093\n"
        "listeners=PLAINTEXT://127.0.0.1:0,CONTROLLER://:9093\ncontroller.listener.names=CONTROLLER\n"
        f"num.network.threads=3\nlog.dirs={tmp_path}/data\nlog.retention.hours=168\n"
    )
    with running_broker(tmp_path / "log", "--config", str(file)) as broker:
        assert settings(broker, "log.retention.hours") == {"log.retention.hours": "168"}
        assert "without effect: process.roles" in broker.log_text()


def test_unknown_environment_variable_is_reported_and_ignored(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log", env={"KAFKA_NO_SUCH_THING": "1"}) as broker:
        assert "KAFKA_NO_SUCH_THING" in broker.log_text()
        assert settings(broker, "num.partitions")


# -- logs --------------------------------------------------------------------------------------------------------------


def provoke(broker: BrokerProcess) -> None:
    """Make the broker close a connection."""
    with WireClient(broker.bootstrap, 'the "client') as client:
        client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        client.socket.sendall(b"GET / HTTP/1.1\r\n\r\n")
        assert client.socket.recv(1) == b"", "the connection must be closed"


def test_json_log_has_one_object_per_line(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log", "--log-format", "json", "--seed", "5", env={"KAFKA_NO_SUCH": "1"}) as broker:
        provoke(broker)
        assert broker.stop()[0] == 0
        lines = [json.loads(line) for line in broker.log_text().splitlines()]
    assert [line["message"] for line in lines][1:] == ["started", "connection closed", "stopped"]
    assert all({"time", "level", "logger", "message"} <= set(line) for line in lines)
    assert lines[1]["seed"] == 5
    closed = lines[2]
    assert (closed["level"], closed["client_id"]) == ("WARNING", 'the "client')
    assert closed["reason"].startswith("invalid frame size 1195725856")


def test_text_log_has_one_line_per_event(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log") as broker:
        provoke(broker)
        broker.stop()
        lines = broker.log_text().splitlines()
    assert len(lines) == 3
    assert "connection closed peer=127.0.0.1:" in lines[1]
    assert 'client_id="the \\"client"' in lines[1]
    assert 'reason="invalid frame size 1195725856' in lines[1]


# -- stopping ----------------------------------------------------------------------------------------------------------

# Ten times the second that the broker promises, as the machine may be busy. The waits that end early last 90 s
# (throttled responses) and longer.
STOPPED_WITHIN_S = 10


def open_connections(broker: BrokerProcess, stack: ExitStack) -> None:
    for _ in range(20):
        stack.enter_context(WireClient(broker.bootstrap))


def parked(broker: BrokerProcess, stack: ExitStack) -> None:
    for _ in range(20):
        client = stack.enter_context(WireClient(broker.bootstrap))
        client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        client.send(fetch(0, max_wait_ms=600_000), 11)


def throttled(version: int) -> Callable[[BrokerProcess, ExitStack], None]:
    def throttle(broker: BrokerProcess, stack: ExitStack) -> None:
        for number in range(20):
            client = stack.enter_context(WireClient(broker.bootstrap, f"slow-{number}"))
            client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
            client.send(produce_of(100_000, version, client.client_id), version)
            client.send(produce(version), version)

    return throttle


def half_sent(broker: BrokerProcess, stack: ExitStack) -> None:
    client = stack.enter_context(WireClient(broker.bootstrap))
    client.socket.sendall((100_000_000).to_bytes(4) + bytes(500_000))


def not_reading(broker: BrokerProcess, stack: ExitStack) -> None:
    client = stack.enter_context(WireClient(broker.bootstrap))
    client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
    client.call(produce_of(1_000_000, 9, "wire"), 9)
    for _ in range(50):
        client.send(fetch(0), 11)


def not_reading_long_pipelines(broker: BrokerProcess, stack: ExitStack) -> None:
    """Pipeline requests of about 5 ms, for more seconds than the broker has to stop."""
    clients = [stack.enter_context(WireClient(broker.bootstrap)) for _ in range(10)]
    topic = CreatableTopic(name="t", num_partitions=1000, replication_factor=1)
    clients[0].call(CreateTopicsRequest(topics=[topic]), 5)
    for client in clients:
        for _ in range(300):
            client.send(MetadataRequest(topics=None), 9)


def scraped(broker: BrokerProcess, stack: ExitStack) -> None:
    connection = HTTPConnection(broker.admin.removeprefix("http://"))
    stack.callback(connection.close)
    connection.request("GET", "/metrics")
    assert connection.getresponse().read()  # and the connection stays open


def about_to_be_scraped(broker: BrokerProcess, stack: ExitStack) -> None:
    host, port = str(broker.ready["admin"]).removeprefix("http://").split(":")
    stack.enter_context(socket.create_connection((host, int(port))))


BUSY = {
    "open connections, SIGINT": (open_connections, signal.SIGINT),
    "open connections": (open_connections, signal.SIGTERM),
    "delayed fetches": (parked, signal.SIGTERM),
    "throttled responses": (throttled(3), signal.SIGTERM),
    "muted connections": (throttled(9), signal.SIGTERM),
    "an incomplete request": (half_sent, signal.SIGTERM),
    "a client that does not read": (not_reading, signal.SIGTERM),
    "clients that pipeline requests and do not read": (not_reading_long_pipelines, signal.SIGTERM),
    "a scraper that stays connected": (scraped, signal.SIGTERM),
    "a scraper that has just connected": (about_to_be_scraped, signal.SIGTERM),
}


@pytest.mark.parametrize(("busy", "number"), BUSY.values(), ids=BUSY)
def test_signal_stops_the_broker_despite(
    busy: Callable[[BrokerProcess, ExitStack], None], number: int, tmp_path: Path
) -> None:
    with (
        running_broker(
            tmp_path / "log", *overrides("quota.producer.default=1000", "quota.producer.override=wire:1e9")
        ) as broker,
        ExitStack() as stack,
    ):
        busy(broker, stack)
        exit_code, seconds, rest = broker.stop(number)
        assert (exit_code, rest) == (0, "")
        assert seconds < STOPPED_WITHIN_S
        lines = broker.log_text().splitlines()
    assert [line for line in lines if "INFO" not in line] == []
    assert lines[-1].endswith("stopped")


# -- start errors ------------------------------------------------------------------------------------------------------


def fails(*args: str) -> tuple[int, str]:
    """Run `sluice serve`, which must fail; return its exit code and its only line of output."""
    unset: dict[str, str | None] = dict.fromkeys(os.environ.keys() - CLEAN_ENVIRONMENT.keys())
    result = CliRunner().invoke(cli, ["serve", "--port", "0", "--admin-port", "0", *args], env=unset)
    assert result.stdout == ""
    lines = result.stderr.splitlines()
    assert len(lines) == 1, f"expected a single line:{result.stderr}"
    return result.exit_code, lines[0]


@pytest.mark.parametrize("which", ["--port", "--admin-port"])
def test_port_in_use_is_one_line_and_exit_code_1(which: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "sluice", "serve", "--port", "0", "--admin-port", "0", which, str(port)]
        done = subprocess.run(command, env=CLEAN_ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"Error: cannot listen on 127.0.0.1:{port}: Address already in use\n"


def test_unknown_host_is_one_line_and_exit_code_1() -> None:
    exit_code, line = fails("--host", "no host")
    assert exit_code == 1
    assert line.startswith("Error: ")
    assert "no host" in line


def test_file_error_has_its_line_number(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("# comment\nnum.partitions=0\n")
    exit_code, line = fails("--config", str(file))
    assert exit_code == 2
    assert [word for word in (f"{file} line 2", "num.partitions", "from 1", "got 0") if word not in line] == []
