"""Sessions of commands with the lines that they print: commands.txt describes the format.

Other commands: `write FILE CONTENT`, `consumer GROUP TOPIC PROTOCOL` (joins and polls until `leave`), `member KIND
GROUP TOPIC` (joins a share or Streams group until `leave`), `transaction ID TOPIC` (writes a record and stays open),
`hang TOPIC` (writes to a transaction that has no coordinator).
"""

import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer

from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.share_group_heartbeat import ShareGroupHeartbeatRequest
from sluice.protocol.apis.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from tests.clients.kafka_commands import Printed, run_command
from tests.support import skips
from tests.support.broker_process import BrokerProcess
from tests.support.records import batch, produce
from tests.support.streams_groups import stateless
from tests.support.wire import WireClient, error_codes

TIMEOUT_S = 60
HANGING_PRODUCER_ID = 777
CLASSES = {
    "acls": "AclCommand",
    "broker-api-versions": "BrokerApiVersionsCommand",
    "client-metrics": "ClientMetricsCommand",
    "cluster": "ClusterTool",
    "configs": "kafka.admin.ConfigCommand",
    "console-consumer": "consumer.ConsoleConsumer",
    "console-producer": "ConsoleProducer",
    "console-share-consumer": "consumer.ConsoleShareConsumer",
    "consumer-groups": "consumer.group.ConsumerGroupCommand",
    "consumer-perf-test": "ConsumerPerformance",
    "delegation-tokens": "DelegationTokenCommand",
    "delete-records": "DeleteRecordsCommand",
    "dump-log": "DumpLogSegments",
    "e2e-latency": "EndToEndLatency",
    "features": "FeatureCommand",
    "get-offsets": "GetOffsetShell",
    "groups": "GroupsCommand",
    "leader-election": "LeaderElectionCommand",
    "log-dirs": "LogDirsCommand",
    "metadata-quorum": "MetadataQuorumCommand",
    "producer-perf-test": "ProducerPerformance",
    "reassign-partitions": "reassign.ReassignPartitionsCommand",
    "replica-verification": "ReplicaVerificationTool",
    "share-consumer-perf-test": "ShareConsumerPerformance",
    "share-groups": "consumer.group.ShareGroupCommand",
    "streams-application-reset": "StreamsResetter",
    "streams-groups": "streams.StreamsGroupCommand",
    "topics": "TopicCommand",
    "transactions": "TransactionsCommand",
    "verifiable-consumer": "VerifiableConsumer",
    "verifiable-producer": "VerifiableProducer",
    "verifiable-share-consumer": "VerifiableShareConsumer",
}


class Step(NamedTuple):
    """A command and its expectations."""

    command: str
    expected: list[str]


def read_sections(name: str) -> dict[str, list[Step]]:
    """Return the steps of each section of a file, by title."""
    _, *sections = Path(__file__).with_name(name).read_text().split("\n== ")
    found = {}
    for section in sections:
        title, *steps = section.split("\n$ ")
        parts = [step.splitlines() for step in steps]
        found[title.strip()] = [Step(command, [line for line in lines if line]) for command, *lines in parts]
    return found


class Session:
    """The brokers of all sections, and what one section has open: a group member or a transaction."""

    def __init__(self, broker: BrokerProcess, folder: Path) -> None:
        self._bootstrap = broker.bootstrap
        self._folder = folder
        self._open = ExitStack()

    def run(self, line: str) -> Printed:
        """Run a command."""
        command, _, typed = line.partition(" << ")
        name, _, rest = command.partition(" ")
        stdin = "".join(f"{part}\n" for part in typed.replace(r"\t", "\t").split("/")) if typed else ""
        if name.startswith("kafka-"):
            rest = rest.replace("@", f"--bootstrap-server {self._bootstrap}").replace("{b}", self._bootstrap)
            arguments = rest.replace("{dir}", str(self._folder)).split()
            return run_command(CLASSES[name.removeprefix("kafka-")], *map(self._files, arguments), stdin=stdin)
        if name == "kcat":
            return run_kcat(*rest.replace("@", f"-b {self._bootstrap}", 1).split(), stdin=stdin)
        actions: dict[str, Callable[..., None]] = {
            "write": self._write,
            "consumer": self._consumer,
            "member": self._member,
            "leave": self._open.close,
            "transaction": self._transaction,
            "hang": self._hang,
        }
        actions[name](*rest.split(" ", 1 if name == "write" else -1) if rest else ())
        return Printed()

    def close(self) -> None:
        self._open.close()

    def _files(self, argument: str) -> str:
        """Replace a path with * by the files that it matches and that are not empty."""
        pattern = argument.removeprefix(f"{self._folder}/")
        if pattern == argument or "*" not in pattern:
            return argument
        return ",".join(str(path) for path in sorted(self._folder.glob(pattern)) if path.stat().st_size)

    def _write(self, name: str, content: str) -> None:
        (self._folder / name).write_text(content)

    def _consumer(self, group: str, topic: str, protocol: str) -> None:
        """Let a consumer join, and poll until it leaves."""
        names = {"group.id": group, "client.id": f"{group}-client", "group.protocol": protocol}
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "auto.offset.reset": "earliest", **names})
        is_assigned, is_leaving = Event(), Event()
        consumer.subscribe([topic], on_assign=lambda *_: is_assigned.set())

        def poll() -> None:
            while not is_leaving.is_set():
                consumer.poll(0.1)
            consumer.close()

        thread = Thread(target=poll)
        thread.start()
        self._open.callback(thread.join)
        self._open.callback(is_leaving.set)
        assert is_assigned.wait(TIMEOUT_S)

    def _member(self, kind: str, group: str, topic: str) -> None:
        """Let a member join, which sends no more heartbeats until it leaves."""
        with WireClient(self._bootstrap) as bootstrap:
            [coordinator] = bootstrap.call(FindCoordinatorRequest(coordinator_keys=[group]), 4).coordinators
        wire = self._open.enter_context(WireClient(f"{coordinator.host}:{coordinator.port}"))
        who: dict[str, Any] = {"group_id": group, "member_id": "member-1"}
        join: ShareGroupHeartbeatRequest | StreamsGroupHeartbeatRequest
        if kind == "share":
            join = ShareGroupHeartbeatRequest(**who, subscribed_topic_names=[topic])
        else:
            of_process: dict[str, Any] = {
                "process_id": "process-1",
                "topology": stateless(topic),
                "rebalance_timeout_ms": 60_000,
            }
            join = StreamsGroupHeartbeatRequest(**who, **of_process, active_tasks=[], standby_tasks=[], warmup_tasks=[])
        for _ in range(2):  # an assignment is returned after the heartbeat that caused it
            assert wire.call(join, 1).error_code == 0
        self._open.callback(wire.call, type(join)(**who, member_epoch=-1), 1)

    def _transaction(self, transactional_id: str, topic: str) -> None:
        """Write a record in a transaction that stays open."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "transactional.id": transactional_id})
        producer.init_transactions(TIMEOUT_S)
        producer.begin_transaction()
        producer.produce(topic, b"open", partition=0)
        assert producer.flush(TIMEOUT_S) == 0
        self._open.callback(producer.purge)

    def _hang(self, topic: str) -> None:
        """Write a batch of a transaction that its coordinator does not know."""
        request = produce(
            9,
            batch(b"hanging", producer_id=HANGING_PRODUCER_ID, producer_epoch=0, base_sequence=0, transactional=True),
            topic=topic,
            acks=-1,
        )
        request.transactional_id = "unknown"
        with WireClient(self._bootstrap) as wire:
            assert error_codes(wire.call(request, 9)) == []


def run_kcat(*arguments: str, stdin: str = "") -> Printed:
    """Run kcat, or skip the test if it is missing."""
    if shutil.which("kcat") is None:
        pytest.skip(skips.program("kcat", "apt-get install kcat"))
    done = subprocess.run(
        ["kcat", *arguments], input=stdin, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
    )
    return Printed(done.stdout, done.stderr, done.returncode)


def run_section(steps: Sequence[Step], broker: BrokerProcess, folder: Path) -> None:
    """Run all steps of a section."""
    session = Session(broker, folder)
    try:
        for step in steps:
            printed = session.run(step.command)
            unmet = problems(printed, step.expected)
            assert not unmet, f"{step.command}\nexpected {unmet}, got\n{printed.text}"[:4000]
    finally:
        session.close()


def problems(printed: Printed, expected: Sequence[str]) -> list[str]:
    """Return the expectations that the output does not meet."""
    lines = [" ".join(line.split()) for line in printed.text.splitlines()]
    code = next((int(line.removeprefix("exit ")) for line in expected if line.startswith("exit ")), 0)
    found = [] if printed.code == code else [f"exit {code}, got {printed.code}"]
    for line in expected:
        # fnmatch has no quotes for brackets.
        pattern = line.removeprefix("! ").replace("[", "[[]")
        if not line.startswith("exit ") and any(fnmatchcase(one, pattern) for one in lines) == line.startswith("! "):
            found.append(line)
    return found
