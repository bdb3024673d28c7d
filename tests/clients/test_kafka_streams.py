"""Kafka Streams counts words in a Streams group (KIP-1071): two instances, one of which is killed; and its command.

With exactly-once, it is killed in the middle of its work; otherwise after its commits, since it would count again.
"""

import random
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Condition, Thread
from time import monotonic

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from sluice.protocol.apis.streams_group_describe import DescribedGroup, StreamsGroupDescribeRequest
from tests.support import skips
from tests.support.broker_process import BrokerProcess, overrides, running_broker, running_proxy
from tests.support.wire import WireClient
from tools.clients.built import BUILT, SOURCES, missing
from tools.docs.results.client_matrix import STREAMS_SCENARIOS

APPLICATION = "word-count"
PARTITIONS = 4
LINES = 500
WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
TIMEOUT_S = 120  # for a step on a busy machine
# Short enough that a killed member is missed soon.
PROPERTIES = (
    "group.streams.min.heartbeat.interval.ms=100",
    "group.streams.heartbeat.interval.ms=500",
    "group.streams.min.session.timeout.ms=1000",
    "group.streams.session.timeout.ms=6000",
    "group.streams.initial.rebalance.delay.ms=1000",
    "offsets.topic.num.partitions=3",
    "transaction.state.log.num.partitions=3",
)


class Instance:
    """One instance of the word count, a process."""

    def __init__(self, bootstrap: str, guarantee: str, directory: Path) -> None:
        directory.mkdir()
        settings = {
            "bootstrap.servers": bootstrap,
            "application.id": APPLICATION,
            "group.protocol": "streams",
            "processing.guarantee": guarantee,
            "commit.interval.ms": 100,
            "state.dir": directory / "state",
        }
        built = BUILT / "kafka-streams"
        java = ("java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", f"{built}/classes:{built}/lib/*", "WordCount")
        self._log = directory / "log"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*java, *(f"{key}={value}" for key, value in settings.items())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._states: list[str] = []
        self._changed = Condition()
        self._reader = Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._changed:
                self._states.append(line.strip())
                self._changed.notify_all()

    def await_running(self) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self._states[-1:] == ["RUNNING"], TIMEOUT_S), self.explain()

    def explain(self) -> str:
        return f"states: {self._states}; {self._log.read_text()[-4000:]}"

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> int:
        """Let the instance leave the group; return its exit code."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(TIMEOUT_S)
        self._reader.join()
        self.process.stdout.close()
        return code


class Work:
    """The lines written so far, and the counts read so far."""

    def __init__(self, bootstrap: str) -> None:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        for future in admin.create_topics([NewTopic("lines", PARTITIONS, 1), NewTopic("counts", 1, 1)]).values():
            future.result(TIMEOUT_S)
        self._random = random.Random(1)
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "check",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
            }
        )
        self._consumer.assign([TopicPartition("counts", 0, 0)])
        self._group = Consumer({"bootstrap.servers": bootstrap, "group.id": APPLICATION})
        self.expected: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()

    def write(self, lines: int) -> None:
        for number in range(lines):
            words = self._random.choices(WORDS, k=5)
            self.expected.update(words)
            self._producer.produce("lines", " ".join(words), key=str(number), partition=number % PARTITIONS)
        assert self._producer.flush(TIMEOUT_S) == 0

    def await_counts(self, explain: Callable[[], str]) -> None:
        end = monotonic() + TIMEOUT_S
        while self.counts != self.expected:
            assert monotonic() < end, f"{self.counts} != {self.expected}; {explain()}"
            message = self._consumer.poll(0.5)
            if message is not None:
                assert message.error() is None, message.error()
                word, count = message.key(), message.value()
                assert isinstance(word, bytes)
                assert isinstance(count, bytes)
                self.counts[word.decode()] = int.from_bytes(count)

    def await_commits(self) -> None:
        topics = ("lines", f"{APPLICATION}-counts-store-repartition")
        partitions = [TopicPartition(topic, index) for topic in topics for index in range(PARTITIONS)]
        end = monotonic() + TIMEOUT_S
        while True:
            committed = self._group.committed(partitions, TIMEOUT_S)
            ends = [self._group.get_watermark_offsets(one, TIMEOUT_S)[1] for one in partitions]
            if [max(one.offset, 0) for one in committed] == ends:
                return
            assert monotonic() < end, f"{committed} != {ends}"

    def close(self) -> None:
        self._consumer.close()
        self._group.close()


def describe(bootstrap: str) -> DescribedGroup:
    with WireClient(bootstrap) as client:
        [group] = client.call(StreamsGroupDescribeRequest(group_ids=[APPLICATION]), 1).groups
    assert isinstance(group, DescribedGroup)
    return group


@pytest.fixture
def broker(tmp_path: Path, upstream: str | None) -> Iterator[BrokerProcess]:
    if shutil.which("java") is None:
        pytest.skip(skips.JAVA)
    if (reason := missing("kafka-streams")) is not None:
        pytest.skip(skips.build("kafka-streams", reason))
    log = tmp_path / "broker.log"
    ours = overrides(*PROPERTIES)
    with running_broker(log, *ours) if upstream is None else running_proxy(log, upstream) as process:
        yield process


@pytest.mark.parametrize("guarantee", STREAMS_SCENARIOS)
def test_words_are_counted_by_two_instances_of_which_one_is_killed(
    broker: BrokerProcess, tmp_path: Path, guarantee: str, record_property: Callable[[str, object], None]
) -> None:
    for name, value in (("client", "kafka-streams"), ("version", SOURCES["kafka-streams"].variant)):
        record_property(name, value)
    record_property("scenario", guarantee)
    work = Work(broker.bootstrap)
    instances: list[Instance] = []
    try:
        instances += [Instance(broker.bootstrap, guarantee, tmp_path / name) for name in ("one", "two")]
        one, two = instances
        for instance in instances:
            instance.await_running()
        work.write(LINES)
        work.await_counts(two.explain)
        group = describe(broker.bootstrap)
        assert (group.group_state, group.assignor_name) == ("Stable", "sticky")
        assert sorted(len(member.assignment.active_tasks) > 0 for member in group.members) == [True, True]
        if guarantee == "at_least_once":
            work.await_commits()
        else:
            work.write(LINES)
        one.kill()
        work.write(LINES)
        work.await_counts(two.explain)
        [member] = describe(broker.bootstrap).members
        tasks = {(one.subtopology_id, index) for one in member.assignment.active_tasks for index in one.partitions}
        assert len(tasks) == 2 * PARTITIONS
        assert two.close() == 0, two.explain()
        assert describe(broker.bootstrap).group_state == "Empty"
    finally:
        work.close()
        for instance in instances:
            if instance.process.poll() is None:
                instance.kill()
