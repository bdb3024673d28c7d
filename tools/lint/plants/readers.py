"""Plants of the rules about readers in sluice/lint/rules/topics."""

from collections.abc import Sequence
from random import Random

from tools.lint.job import Job
from tools.lint.plant import DOTTED, PYTHON, Cell, Plant, anyhow, consuming
from tools.lint.scene import Scene


def _transactions(random: Random) -> Scene:
    writer = Job(
        role="produce", client_id="writer", transactional_id="shop", bursts=random.randint(5, 8), records=5, every_ms=50
    )
    return Scene(jobs=[consuming(random, for_ms=6_000), writer])


def _partitions(random: Random) -> Scene:
    """The consumer has no group, so it assigns its partitions itself."""
    job = consuming(random, group="", for_ms=random.randint(15_000, 16_000))
    return Scene(jobs=[job], topics={"orders": random.randint(2, 4)}, feed_ms=50)


def _member(random: Random) -> Scene:
    return Scene(jobs=[consuming(random, for_ms=random.randint(20_000, 21_000))], feed_ms=100)


_ALL = (*PYTHON, *DOTTED, "franz-go", "sarama")

PLANTS: Sequence[Plant] = (
    Plant(
        "read-uncommitted",
        _transactions,
        {
            "aiokafka": Cell({}, {"isolation_level": "read_committed"}),
            "kafka-python": Cell({}, {"isolation_level": "read_committed"}),
            "confluent-kafka": Cell({"isolation.level": "read_uncommitted"}, {}),
            "java-4": Cell({}, {"isolation.level": "read_committed"}),
            "java-3.9": Cell({}, {"isolation.level": "read_committed"}),
            "franz-go": Cell({}, {"FetchIsolationLevel": "read_committed"}),
            "sarama": Cell({}, {"Consumer.IsolationLevel": 1}),
            "kafkajs": Cell({"consumer.readUncommitted": True}, {}),
        },
    ),
    Plant("partition-without-reader", _partitions, anyhow(*PYTHON, *DOTTED), planted={"partitions": 1}),
    Plant("group-without-commits", _member, anyhow(*_ALL), planted={"commit": "none"}),
)
