"""Plants of the rules in sluice/lint/rules/producing."""

from collections.abc import Sequence
from random import Random
from typing import Any

from tools.lint.job import Job
from tools.lint.plant import Cell, Plant, anyhow, producing
from tools.lint.scene import Fault, Scene


def _plain(random: Random) -> Scene:
    return Scene(jobs=[producing(random)])


def _fast(random: Random) -> Scene:
    """Each record is sent at once."""
    return Scene(jobs=[Job(role="produce", bursts=random.randint(1_400, 1_600), size=random.randint(50, 200))])


def _pairs(random: Random) -> Scene:
    job = Job(role="produce", bursts=random.randint(1_200, 1_400), records=random.randint(3, 4), size=50)
    return Scene(jobs=[job], topics={"orders": 1})


def _bulk(random: Random) -> Scene:
    job = Job(role="produce", bursts=random.randint(60, 70), records=200, size=random.randint(1_000, 1_200))
    return Scene(jobs=[job])


def _for_a_time(seconds: float) -> dict[str, Any]:
    """Return the fields of a producer that sends single records for that long."""
    return {"role": "produce", "bursts": round(seconds * 20), "records": 1, "every_ms": 50, "wait": False}


def _failing_batches(random: Random) -> Scene:
    """Some batches fail, with a retriable error, long before the end."""
    error: Fault = {"api": "Produce", "on": sorted(random.sample(range(5, 25), 4)), "client_id": "app"}
    fault = error | {"action": {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"}}
    return Scene(jobs=[Job(**_for_a_time(8.5))], topics={"orders": 1}, faults=[fault], fails=True)


def _no_responses(random: Random) -> Scene:
    """Some requests are lost, long before the end."""
    fault: Fault = {"api": "Produce", "on": [random.randint(5, 10), random.randint(15, 20)], "client_id": "app"}
    fault |= {"action": {"kind": "black-hole"}}
    return Scene(jobs=[Job(**_for_a_time(11))], topics={"orders": 1}, faults=[fault], fails=True)


def _slow_responses(random: Random) -> Scene:
    """Some responses come later than the client waits, but in time for the broker."""
    fault: Fault = {"api": "Produce", "on": [4, random.randint(7, 9), random.randint(11, 13)], "client_id": "app"}
    fault |= {"action": {"kind": "delay", "ms": random.randint(2_500, 3_000), "when": "after"}}
    return Scene(jobs=[Job(**_for_a_time(9))], topics={"orders": 1}, faults=[fault], fails=True)


def _overtaken(random: Random) -> Scene:
    """Several requests are in flight when one fails."""
    slow: Fault = {"api": "Produce", "client_id": "app", "action": {"kind": "delay", "ms": 30}}
    failing: Fault = {"api": "Produce", "client_id": "app", "on": sorted(random.sample(range(8, 40), 5))}
    failing |= {"action": {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"}}
    job = Job(role="produce", bursts=200, every_ms=10, wait=False)
    return Scene(jobs=[job], topics={"orders": 1}, faults=[slow, failing], fails=True)


PLANTS: Sequence[Plant] = (
    Plant(
        "acks-below-all",
        _plain,
        {
            "aiokafka": Cell({"acks": 1}, {"acks": "all"}),
            "confluent-kafka": Cell({"acks": 1}, {"acks": "all"}),
            "kafka-python": Cell({"acks": 1, "enable_idempotence": False}, {}),
            "java-4": Cell({"acks": "1"}, {"acks": "all"}),
            "franz-go": Cell({"RequiredAcks": "1", "DisableIdempotentWrite": True}, {}),
            "sarama": Cell({"Producer.RequiredAcks": 1}, {"Producer.RequiredAcks": -1}),
            "kafkajs": Cell({"send.acks": 1}, {}),
        },
    ),
    Plant(
        "acks-zero",
        _plain,
        {
            "aiokafka": Cell({"acks": 0}, {"acks": "all"}),
            "confluent-kafka": Cell({"acks": 0}, {"acks": "all"}),
            "kafka-python": Cell({"acks": 0, "enable_idempotence": False}, {}),
            "java-4": Cell({"acks": "0"}, {"acks": "all"}),
            "sarama": Cell({"Producer.RequiredAcks": 0}, {"Producer.RequiredAcks": -1}),
            "kafkajs": Cell({"send.acks": 0}, {}),
        },
    ),
    Plant(
        "clock-ahead",
        lambda random: Scene(jobs=[producing(random, skew_ms=random.randint(20_000, 3_000_000))]),
        anyhow("aiokafka", "confluent-kafka", "kafka-python", "java-4", "franz-go", "sarama", "kafkajs"),
        remedied={"skew_ms": 0},
    ),
    Plant(
        "delivery-timeout-too-short",
        _no_responses,
        {
            "confluent-kafka": Cell(
                {"message.timeout.ms": 1_000, "socket.timeout.ms": 1_000, "linger.ms": 0, "max.in.flight": 1},
                {"message.timeout.ms": 300_000, "socket.timeout.ms": 1_000, "linger.ms": 0, "max.in.flight": 1},
            ),
            "java-4": Cell(
                {"delivery.timeout.ms": 1_000, "request.timeout.ms": 1_000, "linger.ms": 0},
                {"delivery.timeout.ms": 120_000, "request.timeout.ms": 1_000, "linger.ms": 0},
            ),
            "sarama": Cell({"Net.ReadTimeout": 1_000, "Producer.Retry.Max": 0}, {"Net.ReadTimeout": 1_000}),
        },
        also=frozenset({"retries-disabled"}),
    ),
    Plant(
        "hot-partition",
        lambda random: Scene(
            jobs=[
                Job(
                    role="produce",
                    bursts=random.randint(150, 180),
                    records=20,
                    size=1_000,
                    every_ms=10,
                    keys=random.randint(100, 200),
                )
            ],
            topics={"orders": 6},
        ),
        anyhow("aiokafka", "confluent-kafka", "java-4", "kafka-python", "kafkajs"),
        planted={"hot_percent": 90},
    ),
    Plant(
        "no-compression",
        _bulk,
        {
            "aiokafka": Cell({}, {"compression_type": "lz4"}),
            "confluent-kafka": Cell({}, {"compression.type": "lz4"}),
            "java-4": Cell({}, {"compression.type": "zstd"}),
            "franz-go": Cell({"ProducerBatchCompression": "none"}, {"ProducerBatchCompression": "lz4"}),
            "kafkajs": Cell({}, {"send.compression": "gzip"}),
        },
    ),
    Plant(
        "one-record-per-batch",
        _fast,
        {
            "aiokafka": Cell({}, {"linger_ms": 5}),
            "confluent-kafka": Cell({"linger.ms": 0}, {"linger.ms": 5}),
            "java-4": Cell({"linger.ms": 0}, {"linger.ms": 5}),
            "franz-go": Cell({"ProducerLinger": 0}, {"ProducerLinger": 5}),
        },
        planted={"wait": True},
        remedied={"wait": False},
    ),
    Plant(
        "producer-per-message",
        lambda random: Scene(jobs=[Job(role="produce", bursts=random.randint(45, 60), new_client=True)]),
        {
            "aiokafka": Cell({"enable_idempotence": True}, {"enable_idempotence": True}),
            "confluent-kafka": Cell({"enable.idempotence": True}, {"enable.idempotence": True}),
            "java-4": Cell({}, {}),
            "franz-go": Cell({}, {}),
            "kafka-python": Cell({}, {}),
        },
        remedied={"new_client": False},
    ),
    Plant(
        "records-too-large",
        lambda random: Scene(
            jobs=[
                Job(
                    role="produce",
                    bursts=random.randint(10, 20),
                    size=random.randint(15_000, 30_000),
                    every_ms=50,
                    wait=False,
                )
            ],
            properties={"message.max.bytes": 10_000},
            fails=True,
        ),
        {
            "aiokafka": Cell({}, {"max_request_size": 10_000}),
            "confluent-kafka": Cell({}, {"message.max.bytes": 10_000}),
            "java-4": Cell({}, {"max.request.size": 10_000}),
            "kafka-python": Cell(
                {"enable_idempotence": False}, {"enable_idempotence": False, "max_request_size": 10_000}
            ),
        },
    ),
    Plant(
        "reordered-by-retry",
        _overtaken,
        {
            "confluent-kafka": Cell(
                {"enable.idempotence": False, "linger.ms": 0}, {"enable.idempotence": True, "linger.ms": 0}
            ),
            "java-4": Cell({"enable.idempotence": False, "linger.ms": 0}, {"linger.ms": 0}),
            "kafka-python": Cell({"enable_idempotence": False}, {}),
            "franz-go": Cell({"DisableIdempotentWrite": True, "MaxProduceRequestsInflightPerBroker": 5}, {}),
        },
    ),
    Plant(
        "reordering-possible",
        lambda random: Scene(
            jobs=[Job(role="produce", bursts=random.randint(400, 500), every_ms=5, wait=False)],
            topics={"orders": 1},
            faults=[{"api": "Produce", "client_id": "app", "action": {"kind": "delay", "ms": random.randint(30, 60)}}],
        ),
        {
            "confluent-kafka": Cell(
                {"enable.idempotence": False, "linger.ms": 0}, {"enable.idempotence": True, "linger.ms": 0}
            ),
            "java-4": Cell({"enable.idempotence": False, "linger.ms": 0}, {"linger.ms": 0}),
            "kafka-python": Cell({"enable_idempotence": False}, {}),
        },
    ),
    Plant(
        "request-timeout-too-short",
        _slow_responses,
        {
            "confluent-kafka": Cell(
                {"socket.timeout.ms": 1_000, "request.timeout.ms": 30_000, "max.in.flight": 1},
                {"socket.timeout.ms": 60_000, "request.timeout.ms": 30_000, "max.in.flight": 1},
            ),
            "sarama": Cell({"Net.ReadTimeout": 1_000, "Net.MaxOpenRequests": 1}, {"Net.MaxOpenRequests": 1}),
        },
    ),
    Plant(
        "retries-disabled",
        _failing_batches,
        {
            "confluent-kafka": Cell({"retries": 0}, {}),
            "java-4": Cell({"retries": 0, "enable.idempotence": False}, {}),
            "kafka-python": Cell({"retries": 0, "enable_idempotence": False}, {}),
            "sarama": Cell({"Producer.Retry.Max": 0}, {}),
            "kafkajs": Cell({"client.retry.retries": 0}, {}),
        },
    ),
    Plant(
        "small-batches",
        _pairs,
        {
            "aiokafka": Cell({}, {"linger_ms": 20}),
            "confluent-kafka": Cell({"linger.ms": 0}, {"linger.ms": 20}),
            "java-4": Cell({"linger.ms": 0}, {"linger.ms": 20}),
            "franz-go": Cell({"ProducerLinger": 0}, {"ProducerLinger": 20}),
        },
        remedied={"wait": False},
    ),
    Plant("small-batches", _pairs, anyhow("kafkajs"), remedied={"bursts": 60, "records": 60}),
)
