"""Apache Kafka 4.4 and sluice as clusters of processes, with the same properties."""

import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.protocol.apis.init_producer_id import InitProducerIdRequest
from tests.support.broker_process import BrokerProcess, overrides
from tests.support.ports import free_ports
from tests.support.wire import WireClient
from tools.clients.built import BUILT, missing
from tools.differential.case import Layout

BUILD = "kafka-broker"
_START_TIMEOUT_S = 120
_STOP_TIMEOUT_S = 60
# Cluster ids are base64; this one is for tests.
_CLUSTER_ID = "c2x1aWNlLXRlc3RzLTAwMQ"
# A broker needs little for the requests of a case.
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
# What a cluster of one broker on a test machine needs on either side: one replica, few partitions, no first wait.
PROPERTIES = (
    "offsets.topic.replication.factor=1",
    "offsets.topic.num.partitions=1",
    "transaction.state.log.replication.factor=1",
    "transaction.state.log.num.partitions=1",
    "transaction.state.log.min.isr=1",
    "share.coordinator.state.topic.replication.factor=1",
    "share.coordinator.state.topic.num.partitions=1",
    "share.coordinator.state.topic.min.isr=1",
    "group.initial.rebalance.delay.ms=0",
)


def use_first_producer_id(address: str) -> None:
    """Request producer id 0 of a new cluster: the masks cannot tell it from a field without a value."""
    end = time.monotonic() + _START_TIMEOUT_S
    with WireClient(address) as client:
        while client.call(InitProducerIdRequest(transactional_id=None), 5).error_code:
            assert time.monotonic() < end, "no producer id"
            time.sleep(0.1)


def why_not() -> str | None:
    """Return why Apache Kafka cannot be started; None if it can."""
    return missing(BUILD)


class ApacheKafka:
    """Apache Kafka in KRaft mode; the first broker is also the controller."""

    def __init__(self, layout: Layout, folder: Path) -> None:
        self._folder = folder
        ports = free_ports(layout.brokers + 1)
        self.addresses = {node: f"127.0.0.1:{port}" for node, port in enumerate(ports[:-1], 1)}
        for node, port in enumerate(ports[:-1], 1):
            self._configure(layout, node, port, ports[-1])
        self._processes: list[subprocess.Popen[bytes]] = []
        self._start()

    def restart(self, *, kill: bool = False) -> None:
        self.stop(kill=kill)
        self._start()

    def stop(self, *, kill: bool = False) -> None:
        """Stop all brokers, the controller last, so that the others can leave."""
        for process in reversed(self._processes):
            process.kill() if kill else process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._processes.clear()

    def _configure(self, layout: Layout, node: int, port: int, controller_port: int) -> None:
        is_controller = node == 1
        listeners = f"PLAINTEXT://127.0.0.1:{port}"
        lines = [
            f"process.roles={'broker,controller' if is_controller else 'broker'}",
            f"node.id={node}",
            f"controller.quorum.voters=1@127.0.0.1:{controller_port}",
            f"listeners={listeners}" + (f",CONTROLLER://127.0.0.1:{controller_port}" if is_controller else ""),
            f"advertised.listeners={listeners}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            f"log.dirs={self._folder / f'data-{node}'}",
            *PROPERTIES,
            *layout.properties,
            *([f"broker.rack={layout.racks[node - 1]}"] if layout.racks else []),
        ]
        file = self._folder / f"{node}.properties"
        file.write_text("\n".join(lines) + "\n")
        with (self._folder / f"{node}.log").open("wb") as log:
            levels = [word for feature in layout.features for word in ("--feature", feature)]
            self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID, "-c", file, *levels, log=log).wait()

    def _start(self) -> None:
        for node in self.addresses:
            with (self._folder / f"{node}.log").open("ab") as log:
                self._processes.append(self._java("kafka.Kafka", self._folder / f"{node}.properties", log=log))
        for process, (node, address) in zip(self._processes, self.addresses.items(), strict=True):
            self._wait_until_ready(process, node, address)

    def _java(self, main: str, *arguments: str | Path, log: object) -> subprocess.Popen[bytes]:
        command = ["java", *_JVM, "-cp", str(BUILT / BUILD / "lib" / "*"), main, *map(str, arguments)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # type: ignore[call-overload,no-any-return]  # log is a file

    def _wait_until_ready(self, process: subprocess.Popen[bytes], node: int, address: str) -> None:
        host, _, port = address.rpartition(":")
        end = time.monotonic() + _START_TIMEOUT_S
        while True:
            try:
                socket.create_connection((host, int(port)), 1).close()
            except OSError:
                has_failed = process.poll() is not None or time.monotonic() > end
                assert not has_failed, f"Kafka did not start: {(self._folder / f'{node}.log').read_text()}"
                time.sleep(0.1)
            else:
                return


class Sluice:
    """`sluice serve` as Kafka 4.4, in memory or on disk."""

    def __init__(self, layout: Layout, folder: Path, *, on_disk: bool) -> None:
        first, *_ = free_ports(layout.brokers)
        self._log = folder / "sluice.log"
        self._arguments = [
            *("--as", "kafka-4.4", "--port", str(first), "--admin-port", "0"),
            *("--brokers", str(layout.brokers)),
            *(["--racks", ",".join(layout.racks)] if layout.racks else []),
            *(["--data-dir", str(folder / "data")] if on_disk else []),
            *overrides(
                "node.id=1",
                f"sluice.features={','.join(layout.features)}",
                *PROPERTIES,
                *layout.properties,
            ),
        ]
        self._process = BrokerProcess(self._log, *self._arguments)
        self.addresses = {node: f"127.0.0.1:{first + node - 1}" for node in range(1, layout.brokers + 1)}

    def restart(self, *, kill: bool = False) -> None:
        self.stop(kill=kill)
        self._process = BrokerProcess(self._log, *self._arguments)

    def stop(self, *, kill: bool = False) -> None:
        if kill:
            self._process.kill()
        else:
            self._process.stop()


@contextmanager
def apache_kafka(layout: Layout, folder: Path) -> Iterator[ApacheKafka]:
    cluster = ApacheKafka(layout, folder)
    try:
        use_first_producer_id(cluster.addresses[1])
        yield cluster
    finally:
        cluster.stop(kill=True)


@contextmanager
def sluice(layout: Layout, folder: Path, *, on_disk: bool) -> Iterator[Sluice]:
    cluster = Sluice(layout, folder, on_disk=on_disk)
    try:
        use_first_producer_id(cluster.addresses[1])
        yield cluster
    finally:
        cluster.stop(kill=True)
