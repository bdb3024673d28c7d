"""Apache Kafka 4.4 in KRaft mode as processes: one broker or several, in plain text or with SASL_SSL.

The jars are those of `python -m tools.clients.build kafka-broker`.
"""

import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from sluice.protocol.apis.metadata import MetadataRequest
from tests.support.certificates import certificates
from tests.support.ports import free_ports
from tests.support.wire import WireClient
from tools.clients.built import BUILT, missing

BUILD = "kafka-broker"
# Three JVMs that share two cores with a dozen other programs need minutes. A broker that ends is noticed at once.
_START_TIMEOUT_S = 900
_STOP_TIMEOUT_S = 60
# Cluster ids are base64; this one is for tests.
_CLUSTER_ID = "c2x1aWNlLXRlc3RzLTAwMQ"
# A broker needs little for the requests of a test.
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
# What a cluster on a test machine needs: one replica, few partitions, no first wait.
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
_METADATA_VERSION = 9
_LOGIN_MODULES = "org.apache.kafka.common.security"


def why_not() -> str | None:
    """Return why Apache Kafka cannot be started; None if it can."""
    return missing(BUILD)


class ApacheKafka:
    """A cluster with the node ids 1, 2, …; node 1 is also the controller.

    Args:
        folder: Configuration, data and logs of the nodes.
        brokers: Number of brokers.
        properties: `name=value` of each broker; they override `PROPERTIES`.
        racks: Rack of each broker.
        features: `name=level` of the new cluster.
        host: Loopback address of the clients' listener.
        users: Passwords by name. If there are any, clients need SASL_SSL, with PLAIN or SCRAM-SHA-512.
    """

    def __init__(
        self,
        folder: Path,
        brokers: int = 1,
        *,
        properties: Sequence[str] = (),
        racks: Sequence[str] = (),
        features: Sequence[str] = (),
        host: str = "127.0.0.1",
        users: Mapping[str, str] | None = None,
    ) -> None:
        self._folder = folder
        self._host = host
        self._properties = properties
        self._racks = racks
        self._users = users or {}
        ports = free_ports((2 if users else 1) * brokers + 1)
        self._controller_port = ports[-1]
        self._internal_ports = dict(enumerate(ports[brokers:-1], 1))
        self.addresses = {node: f"{host}:{port}" for node, port in enumerate(ports[:brokers], 1)}
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        scram = [f"SCRAM-SHA-512=[name={name},password={password}]" for name, password in self._users.items()]
        options = [word for feature in features for word in ("--feature", feature)]
        options += [word for credential in scram for word in ("--add-scram", credential)]
        for node in self.addresses:
            file = self._configure(node)
            with self._log(node).open("wb") as log:
                command = ("kafka.tools.StorageTool", "format", "-t", _CLUSTER_ID)
                self._java(*command, "-c", file, *options, log=log).wait()

    @property
    def bootstrap(self) -> str:
        return self.addresses[1]

    def restart(self, *, kill: bool = False) -> None:
        """Stop or kill all brokers, and start them with their data."""
        self.stop(kill=kill)
        self.start()

    def start(self) -> None:
        """Start all brokers, and wait until each of them can name all others to clients.

        A broker listens before it is registered and unfenced, and before it knows that the others are.
        """
        for node in self.addresses:
            self._launch(node)
        for node in self.addresses:
            self._wait(node, self._names_all)

    def stop(self, *, kill: bool = False) -> None:
        """Stop all brokers, the controller last, so that the others can leave."""
        for node in sorted(self._processes, reverse=True):
            self.stop_node(node, kill=kill)

    def stop_node(self, node: int, *, kill: bool = False) -> None:
        process = self._processes.pop(node)
        process.kill() if kill else process.terminate()
        try:
            process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def start_node(self, node: int, *, port: int | None = None) -> None:
        """Start one broker with its data, on another port if one is given; wait until it listens."""
        if port is not None:
            self.addresses[node] = f"{self._host}:{port}"
            self._configure(node)
        self._launch(node)
        self._wait(node, self._listens)

    def pids(self) -> list[int]:
        return [process.pid for process in self._processes.values()]

    def _log(self, node: int) -> Path:
        return self._folder / f"{node}.log"

    def _configure(self, node: int) -> Path:
        is_controller = node == 1
        protocol = "SASL_SSL" if self._users else "PLAINTEXT"
        advertised = f"{protocol}://{self.addresses[node]}"
        if self._users:
            advertised += f",INTERNAL://127.0.0.1:{self._internal_ports[node]}"
        controller = f",CONTROLLER://127.0.0.1:{self._controller_port}" if is_controller else ""
        lines = [
            f"process.roles={'broker,controller' if is_controller else 'broker'}",
            f"node.id={node}",
            f"controller.quorum.voters=1@127.0.0.1:{self._controller_port}",
            f"listeners={advertised}{controller}",
            f"advertised.listeners={advertised}",
            "controller.listener.names=CONTROLLER",
            f"listener.security.protocol.map=CONTROLLER:PLAINTEXT,INTERNAL:PLAINTEXT,{protocol}:{protocol}",
            f"log.dirs={self._folder / f'data-{node}'}",
            *PROPERTIES,
            *(self._security() if self._users else ()),
            *self._properties,
            *([f"broker.rack={self._racks[node - 1]}"] if self._racks else []),
        ]
        file = self._folder / f"{node}.properties"
        file.write_text("\n".join(lines) + "\n")
        return file

    def _security(self) -> list[str]:
        files = certificates()
        users = " ".join(f'user_{name}="{password}"' for name, password in self._users.items())
        listener = "listener.name.sasl_ssl"
        return [
            "inter.broker.listener.name=INTERNAL",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={files.broker}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={files.ca}",
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
            f"{listener}.plain.sasl.jaas.config={_LOGIN_MODULES}.plain.PlainLoginModule required {users};",
            f"{listener}.scram-sha-512.sasl.jaas.config={_LOGIN_MODULES}.scram.ScramLoginModule required;",
        ]

    def _launch(self, node: int) -> None:
        with self._log(node).open("ab") as log:
            self._processes[node] = self._java("kafka.Kafka", self._folder / f"{node}.properties", log=log)

    def _java(self, main: str, *arguments: str | Path, log: object) -> subprocess.Popen[bytes]:
        command = ["java", *_JVM, "-cp", str(BUILT / BUILD / "lib" / "*"), main, *map(str, arguments)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # type: ignore[call-overload,no-any-return]  # log is a file

    def _wait(self, node: int, is_ready: Callable[[int], bool]) -> None:
        end = time.monotonic() + _START_TIMEOUT_S
        while not is_ready(node):
            has_failed = self._processes[node].poll() is not None or time.monotonic() > end
            assert not has_failed, f"Kafka did not start: {self._log(node).read_text()}"
            time.sleep(0.1)

    def _listens(self, node: int) -> bool:
        host, _, port = self.addresses[node].rpartition(":")
        try:
            socket.create_connection((host, int(port)), 1).close()
        except OSError:
            return False
        return True

    def _names_all(self, node: int) -> bool:
        """Return whether a broker's Metadata has all brokers. It omits those that are not registered, or are fenced."""
        port = self._internal_ports.get(node)
        try:
            with WireClient(f"127.0.0.1:{port}" if port else self.addresses[node]) as client:
                named = client.call(MetadataRequest(topics=[]), _METADATA_VERSION).brokers
        except OSError:
            return False
        return {broker.node_id for broker in named} == {*self.addresses}


@contextmanager
def running(cluster: ApacheKafka) -> Iterator[ApacheKafka]:
    """Start a cluster, and kill it at the end of the block."""
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop(kill=True)
