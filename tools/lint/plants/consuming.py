"""Plants of the rules in sluice/lint/rules/consuming."""

from collections.abc import Mapping, Sequence
from random import Random

from tools.lint.job import Job, Settings
from tools.lint.plant import Cell, Plant, anyhow, consuming
from tools.lint.scene import Fault, Scene

_SHORT_SESSIONS: dict[str, str | float] = {"group.min.session.timeout.ms": 1000}


def _idle(random: Random) -> Scene:
    return Scene(jobs=[consuming(random, for_ms=random.randint(8_500, 9_500))])


def _backlog(random: Random) -> Scene:
    """Many small batches exist before the consumer starts."""
    writer = Job(role="produce", client_id="writer", bursts=random.randint(110, 130), size=500)
    return Scene(jobs=[consuming(random, start_ms=6_000, poll_ms=50, for_ms=9_000), writer], topics={"orders": 1})


def _trickle(random: Random) -> Scene:
    writer = Job(role="produce", client_id="writer", bursts=random.randint(1_900, 2_100), every_ms=2)
    return Scene(jobs=[consuming(random, for_ms=12_000), writer], topics={"orders": 1})


def _read_and_return(random: Random) -> Scene:
    """The consumer reads everything, is closed, and starts again."""
    job = consuming(random, for_ms=16_000, rejoin_ms=random.randint(5_000, 6_000))
    return Scene(jobs=[job], topics={"orders": 1}, preload={"orders": random.randint(50, 80)})


def _too_much(random: Random) -> Scene:
    """More is produced than a slow consumer reads."""
    job = consuming(random, for_ms=45_000, most=random.randint(15, 20))
    return Scene(jobs=[job], topics={"orders": 1}, feed_ms=random.uniform(4, 5))


def _preloaded(random: Random) -> Scene:
    return Scene(jobs=[consuming(random)], topics={"orders": 1}, preload={"orders": random.randint(90, 140)})


def _steady(random: Random) -> Scene:
    return Scene(jobs=[consuming(random, for_ms=37_000)], topics={"orders": 1}, feed_ms=random.uniform(4, 5))


def _expiring(random: Random) -> Scene:
    """Heartbeats fail with an error after which clients send them again: only commits keep a member."""
    fault: Fault = {"api": "Heartbeat", "client_id": "app"}
    fault |= {"action": {"kind": "error", "code": "NOT_COORDINATOR"}}
    job = consuming(random, for_ms=12_000, commit="poll", process_ms=random.randint(2_400, 2_700), most=10)
    return Scene(
        jobs=[job], topics={"orders": 1}, feed_ms=100, properties=_SHORT_SESSIONS, faults=[fault], fails=True
    )  # fmt: skip


def _each(clients: Sequence[str], planted: Mapping[str, Settings], remedied: Mapping[str, Settings]) -> dict[str, Cell]:
    return {client: Cell(planted.get(client, {}), remedied.get(client, {})) for client in clients}


_FOUR = ("aiokafka", "kafka-python", "confluent-kafka", "java-4")

# Small buffers and fetches, so that what is not fetched is what the application has not read.
_SMALL: Mapping[str, Settings] = {
    "aiokafka": {"max_partition_fetch_bytes": 4_000},
    "kafka-python": {"max_partition_fetch_bytes": 4_000},
    "confluent-kafka": {"max.partition.fetch.bytes": 4_000, "queued.min.messages": 1, "queued.max.messages.kbytes": 1},
    "java-4": {"max.partition.fetch.bytes": "4000"},
}

PLANTS: Sequence[Plant] = (
    Plant(
        "fetches-without-wait",
        _idle,
        {
            "aiokafka": Cell({"fetch_max_wait_ms": 20}, {"fetch_max_wait_ms": 500}),
            "kafka-python": Cell({"fetch_max_wait_ms": 20}, {}),
            "kafka-python-2": Cell({"fetch_max_wait_ms": 20}, {}),
            "confluent-kafka": Cell({"fetch.wait.max.ms": 20}, {"fetch.wait.max.ms": 500}),
            "java-4": Cell({"fetch.max.wait.ms": "20"}, {"fetch.max.wait.ms": "500"}),
            "java-3.9": Cell({"fetch.max.wait.ms": "20"}, {}),
            "sarama": Cell({"Consumer.MaxWaitTime": 20}, {}),
        },
    ),
    Plant(
        "fetches-cut",
        _backlog,
        {
            "aiokafka": Cell({"max_partition_fetch_bytes": 1_200}, {}),
            "kafka-python": Cell({"max_partition_fetch_bytes": 1_200}, {}),
            "confluent-kafka": Cell({"max.partition.fetch.bytes": 1_200}, {"max.partition.fetch.bytes": 1_048_576}),
            "java-4": Cell({"max.partition.fetch.bytes": "1200"}, {}),
            "franz-go": Cell({"FetchMaxPartitionBytes": 1_200}, {}),
            "kafkajs": Cell({"consumer.maxBytesPerPartition": 1_200}, {}),
        },
    ),
    Plant(
        "tiny-fetches",
        _trickle,
        {
            "aiokafka": Cell({}, {"fetch_min_bytes": 16_384}),
            "kafka-python": Cell({}, {"fetch_min_bytes": 16_384}),
            "confluent-kafka": Cell({}, {"fetch.min.bytes": 16_384}),
            "java-4": Cell({}, {"fetch.min.bytes": "16384"}),
        },
    ),
    Plant(
        "offset-out-of-range",
        _read_and_return,
        anyhow(*_FOUR, "java-3.9", "kafka-python-2"),
        planted={"commit": "ahead"},
        remedied={"commit": "poll"},
        also=frozenset({"commit-ahead"}),
    ),
    Plant("lag-grows", _too_much, _each(_FOUR, _SMALL, _SMALL), planted={"process_ms": 1_000}),
    Plant(
        "commit-per-record",
        _preloaded,
        anyhow(*_FOUR, "java-3.9", "kafka-python-2", "franz-go", "sarama", "kafkajs"),
        planted={"commit": "record"},
        remedied={"commit": "poll"},
    ),
    Plant(
        "rare-commits",
        _steady,
        {
            "aiokafka": Cell({"auto_commit_interval_ms": 34_000}, {"auto_commit_interval_ms": 5_000}),
            "kafka-python": Cell({"auto_commit_interval_ms": 34_000}, {}),
            "confluent-kafka": Cell({"auto.commit.interval.ms": 34_000}, {"auto.commit.interval.ms": 5_000}),
            "java-4": Cell({"auto.commit.interval.ms": "34000"}, {}),
        },
    ),
    Plant(
        "commit-ahead",
        _preloaded,
        anyhow(*_FOUR, "java-3.9", "kafka-python-2", "franz-go", "sarama", "kafkajs"),
        planted={"commit": "ahead"},
        remedied={"commit": "poll"},
    ),
    Plant(
        "commit-goes-back",
        _preloaded,
        anyhow(*_FOUR, "java-3.9", "kafka-python-2", "franz-go", "kafkajs"),
        planted={"commit": "back"},
        remedied={"commit": "poll"},
    ),
    Plant(
        "commits-rejected",
        _expiring,
        {
            "aiokafka": Cell(
                {"session_timeout_ms": 2_000, "heartbeat_interval_ms": 600}, {"session_timeout_ms": 45_000}
            ),
            "kafka-python": Cell(
                {"session_timeout_ms": 2_000, "heartbeat_interval_ms": 600}, {"session_timeout_ms": 45_000}
            ),
            "java-4": Cell({"session.timeout.ms": "2000", "heartbeat.interval.ms": "600"}, {}),
            "java-3.9": Cell({"session.timeout.ms": "2000", "heartbeat.interval.ms": "600"}, {}),
        },
    ),
    Plant(
        "group-per-run",
        _idle,
        anyhow(*_FOUR, "java-3.9", "kafka-python-2"),
        planted={"group": "shop-{life}", "rejoin_ms": 700},
        remedied={"group": "shop", "rejoin_ms": 700},
    ),
)
