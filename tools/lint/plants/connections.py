"""Plants of the rules in the folders connections, metadata, retrying and throttling of sluice/lint/rules."""

from collections.abc import Sequence
from random import Random
from typing import Any

from tools.lint.job import Job, Settings
from tools.lint.plant import NOTHING, Cell, Plant, anyhow, producing
from tools.lint.scene import Fault, Scene


def _login(password: str) -> dict[str, Settings]:
    """Return the settings of a login by client."""
    python: Settings = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": password,
    }
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    java: Settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{module} required username="alice" password="{password}";',
    }
    librdkafka: Settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": password,
    }
    return {"aiokafka": python, "kafka-python": python, "java-4": java, "java-3.9": java, "confluent-kafka": librdkafka}


_WRONG, _RIGHT = _login("alice-secrte"), _login("alice-secret")
_ACLS: list[dict[str, Any]] = [
    {"user": "alice", "allow": ["Describe", "Read"], "topic": "orders"},
    {"user": "alice", "allow": ["Describe", "Write", "Create"], "topic": "returns"},
    {"user": "alice", "allow": "IdempotentWrite", "cluster": True},
]


def _login_scene(random: Random) -> Scene:
    job = Job(role="produce", bursts=random.randint(8, 12), every_ms=500, wait=False)
    return Scene(jobs=[job], sasl=True, fails=True)


def _unauthorized(random: Random) -> Scene:
    # The application starts anew after each error.
    job = Job(role="produce", bursts=random.randint(8, 15), every_ms=100, wait=False, new_client=True)
    return Scene(jobs=[job], topics={"orders": 2, "returns": 2}, sasl=True, acls=_ACLS, fails=True)


def _lost_connections(random: Random) -> Scene:
    """A connection is lost, and the next ones end before ApiVersions is answered."""
    fault: Fault = {"api": "ApiVersions", "client_id": "app", "on": list(range(3, random.randint(13, 15)))}
    fault |= {"action": {"kind": "close"}}
    first: Fault = {"api": "Produce", "client_id": "app", "on": [random.randint(8, 12)], "action": {"kind": "close"}}
    return Scene(jobs=[Job(role="produce", bursts=110, every_ms=100, wait=False)], faults=[fault, first], fails=True)


def _failing(random: Random) -> Scene:
    """For some seconds, Produce requests fail with a retriable error."""
    fault: Fault = {"api": "Produce", "client_id": "app", "after": f"{random.randint(700, 900)}ms"}
    fault |= {"until": "5500ms", "action": {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"}}
    job = Job(role="produce", bursts=30, every_ms=250)
    return Scene(jobs=[job], topics={"orders": 1}, faults=[fault], fails=True)


def _failing_briefly(random: Random) -> Scene:
    """Each second record fails four to five times in a row."""
    fault: Fault = {"api": "Produce", "client_id": "app", "schedule": f"{random.randint(4, 5)} fail, 3 pass, repeat"}
    fault |= {"action": {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"}}
    job = Job(role="produce", bursts=20, every_ms=200)
    return Scene(jobs=[job], topics={"orders": 1}, faults=[fault], fails=True)


def _unknown_topic(random: Random) -> Scene:
    job = Job(role="produce", topics=("ordres",), bursts=1, every_ms=random.randint(6_000, 7_000), wait=False)
    return Scene(jobs=[job], properties={"auto.create.topics.enable": "false"}, fails=True)


def _compacted(random: Random) -> Scene:
    job = Job(role="produce", bursts=random.randint(15, 30), every_ms=60, wait=False)
    return Scene(jobs=[job], properties={"log.cleanup.policy": "compact"}, fails=True)


def _quota(random: Random) -> Scene:
    job = Job(role="produce", bursts=65, records=20, size=random.randint(900, 1_200), every_ms=200, wait=False)
    return Scene(jobs=[job], quota={"produce": 20_000}, topics={"orders": 1}, fails=True)


def _throttled(random: Random) -> Scene:
    fault: Fault = {"api": "Produce", "client_id": "app"}
    fault |= {"action": {"kind": "throttle", "throttle_time_ms": random.randint(900, 1_200), "mute": False}}
    return Scene(jobs=[Job(role="produce", bursts=20, every_ms=250, wait=False)], faults=[fault])


def _idle(random: Random) -> Scene:
    clients = random.randint(55, 70)
    opens = Job(role="produce", bursts=clients, new_client=True, every_ms=1)
    later = Job(role="produce", bursts=30, every_ms=200, start_ms=75_000)
    return Scene(jobs=[opens, later])


PLANTS: Sequence[Plant] = (
    Plant(
        "connection-per-message",
        lambda random: Scene(jobs=[Job(role="produce", bursts=random.randint(70, 90), new_client=True)]),
        anyhow("aiokafka", "confluent-kafka", "kafka-python", "java-4", "franz-go", "sarama", "kafkajs"),
        remedied={"new_client": False},
    ),
    Plant(
        "ended-versions",
        lambda random: Scene(jobs=[producing(random)]),
        {
            "kafka-python": Cell({"api_version": "0.10.0", "enable_idempotence": False}, {}),
            "kafka-python-2": Cell({"api_version": "0.10.0"}, {}),
            "sarama": Cell({"Version": "0.10.0.0"}, {"Version": "4.0.0"}),
        },
    ),
    Plant("idle-connections", _idle, anyhow("aiokafka", "confluent-kafka", "kafka-python"), planted={"leave": False}),
    Plant(
        "logins-refused",
        _login_scene,
        {client: Cell(_WRONG[client], _RIGHT[client]) for client in ("confluent-kafka", "java-4", "java-3.9")},
    ),
    Plant(
        "no-client-id",
        lambda random: Scene(jobs=[producing(random)]),
        {
            "confluent-kafka": Cell({}, {}),
            "sarama": Cell({}, {}),
            "aiokafka": Cell({"client_id": ""}, {}),
            "kafka-python": Cell({"client_id": ""}, {}),
        },
        planted={"client_id": ""},
    ),
    Plant(
        "reconnects-without-growing-waits",
        _lost_connections,
        {
            "java-3.9": Cell({"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 50}, {}),
            "java-4": Cell({"reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 50}, {}),
        },
        also=frozenset({"retries-disabled"}),
    ),
    Plant(
        "metadata-storm",
        lambda random: Scene(jobs=[Job(role="produce", bursts=random.randint(60, 80), every_ms=100)]),
        {
            "aiokafka": Cell({"metadata_max_age_ms": 10}, {"metadata_max_age_ms": 300_000}),
            "confluent-kafka": Cell({"topic.metadata.refresh.interval.ms": 10}, {}),
            "java-4": Cell({"metadata.max.age.ms": 10, "retry.backoff.ms": 10}, {"metadata.max.age.ms": 300_000}),
            "franz-go": Cell({"MetadataMaxAge": 20, "MetadataMinAge": 10}, {}),
        },
    ),
    Plant(
        "auto-created-topic",
        lambda random: Scene(jobs=[producing(random, topics=("shipments",))]),
        anyhow("aiokafka", "confluent-kafka", "java-4", "kafka-python", "franz-go"),
        remedied_scene={"topics": {"orders": 2, "shipments": 2}},
    ),
    Plant(
        "unknown-topic",
        _unknown_topic,
        {
            "aiokafka": Cell({"request_timeout_ms": 6_000}, {}),
            "confluent-kafka": NOTHING,
            "java-4": Cell({"max.block.ms": 8_000}, {}),
            "kafka-python": Cell({"max_block_ms": 6_000}, {}),
        },
        remedied={"topics": ("orders",)},
    ),
    Plant(
        "refused-again",
        _compacted,
        {
            "aiokafka": NOTHING,
            "confluent-kafka": NOTHING,
            "java-4": NOTHING,
            "kafka-python": Cell({"enable_idempotence": False}, {"enable_idempotence": False}),
        },
        remedied={"keys": 10},
    ),
    Plant(
        "retries-without-growing-waits",
        _failing_briefly,
        {
            "aiokafka": Cell({"retry_backoff_ms": 100}, {"retry_backoff_ms": 1_500}),
            "confluent-kafka": Cell({"retry.backoff.ms": 100, "retry.backoff.max.ms": 100}, {}),
            "java-4": Cell({"retry.backoff.ms": 100, "retry.backoff.max.ms": 100}, {}),
            "java-3.9": Cell({"retry.backoff.ms": 100, "retry.backoff.max.ms": 100}, {}),
        },
    ),
    Plant(
        "retry-storm",
        _failing,
        {
            "aiokafka": Cell({"retry_backoff_ms": 3}, {"retry_backoff_ms": 100}),
            "confluent-kafka": Cell({"retry.backoff.ms": 1, "retry.backoff.max.ms": 1}, {}),
            "java-4": Cell({"retry.backoff.ms": 1, "retry.backoff.max.ms": 1}, {}),
            "franz-go": Cell({"MetadataMinAge": 10}, {}),  # it awaits new metadata before it retries
        },
    ),
    Plant(
        "unauthorized",
        _unauthorized,
        {
            client: Cell(_RIGHT[client], _RIGHT[client])
            for client in ("aiokafka", "confluent-kafka", "java-4", "kafka-python")
        },
        remedied={"topics": ("returns",)},
    ),
    Plant(
        "throttle-ignored",
        _throttled,
        anyhow("aiokafka", "confluent-kafka"),
        remedied_scene={"faults": []},  # these clients have no such setting
    ),
    Plant(
        "mostly-throttled",
        _quota,
        {
            "aiokafka": Cell({}, {"compression_type": "gzip"}),
            "confluent-kafka": Cell({}, {"compression.type": "lz4"}),
            "java-4": Cell({}, {"compression.type": "gzip"}),
        },
    ),
)
