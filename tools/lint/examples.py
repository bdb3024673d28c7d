"""The examples in the clients' own documentation, as jobs; the client ids are those of the examples."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tools.lint.job import Job, Settings
from tools.lint.scene import Scene

_KAFKA = "https://kafka.apache.org/40/javadoc/org/apache/kafka/clients"
_CONFLUENT = "https://github.com/confluentinc/confluent-kafka-python/blob/master"
_AIOKAFKA = "https://github.com/aio-libs/aiokafka/blob/master"
_SARAMA = "https://github.com/IBM/sarama/blob/main/examples"
_FRANZ = "https://github.com/twmb/franz-go/blob/master"
_KAFKAJS = "https://kafka.js.org/docs"
_KAFKA_PYTHON = "https://github.com/dpkp/kafka-python/blob/master/README.rst"


def _producer(settings: Settings | None = None, **fields: Any) -> Scene:
    usual = {"role": "produce", "client_id": "", "settings": settings or {}}
    return Scene(jobs=[msgspec.convert(usual | fields, Job)])


def _consumer(settings: Settings | None = None, **fields: Any) -> Scene:
    usual = {"role": "consume", "client_id": "", "group": "my-group", "for_ms": 8_000, "settings": settings or {}}
    return Scene(jobs=[msgspec.convert(usual | fields, Job)], preload={"orders": 300}, feed_ms=50)


def _transactions(**fields: Any) -> Scene:
    return _producer(transactional_id="my-transactional-id", **fields)


# Each prints or stores its records, which takes a moment.
_WORK: dict[str, Any] = {"process_ms": 5}
_ONE: dict[str, Any] = {"bursts": 1, "records": 1}
_HUNDRED: dict[str, Any] = {"bursts": 1, "records": 100, "wait": False}

_JAVA = [
    ("producer", f"{_KAFKA}/producer/KafkaProducer.html", _producer({"linger.ms": 1}, keys=100, **_HUNDRED)),
    (
        "transactional producer",
        f"{_KAFKA}/producer/KafkaProducer.html",
        _transactions(bursts=1, records=100, keys=100, wait=False),
    ),
    (
        "automatic commits",
        f"{_KAFKA}/consumer/KafkaConsumer.html",
        _consumer({"enable.auto.commit": "true", "auto.commit.interval.ms": "1000"}, poll_ms=100, **_WORK),
    ),
    (
        "manual commits",
        f"{_KAFKA}/consumer/KafkaConsumer.html",
        _consumer({"enable.auto.commit": "false"}, poll_ms=100, commit="poll", rest_ms=200),
    ),
]
_KAFKA_PYTHON_EXAMPLES = [
    ("producer", _KAFKA_PYTHON, _producer(**_HUNDRED)),
    ("a record with a key", _KAFKA_PYTHON, _producer(keys=1, **_ONE)),
    (
        "compression",
        _KAFKA_PYTHON,
        _producer({"compression_type": "gzip"}, bursts=1, records=1_000, size=7, wait=False),
    ),
    ("consumer without a group", _KAFKA_PYTHON, _consumer(group="", poll_ms=1_000)),
    ("consumer in a group", _KAFKA_PYTHON, _consumer(poll_ms=1_000, **_WORK)),
]

EXAMPLES: Mapping[str, list[tuple[str, str, Scene]]] = {
    "aiokafka": [
        ("producer", f"{_AIOKAFKA}/README.rst", _producer(**_ONE)),
        ("consumer", f"{_AIOKAFKA}/README.rst", _consumer(poll_ms=1_000, **_WORK)),
        (
            "idempotent producer",
            f"{_AIOKAFKA}/examples/indempotent_produce.py",
            _producer({"enable_idempotence": True}, **_ONE),
        ),
        (
            "transactional producer",
            f"{_AIOKAFKA}/examples/transactional_produce.py",
            _transactions(bursts=1, records=10),
        ),
        ("manual commits", f"{_AIOKAFKA}/docs/consumer.rst", _consumer(commit="poll", poll_ms=10_000, **_WORK)),
        (
            "transactional consume-produce",
            f"{_AIOKAFKA}/docs/examples/transaction_example.rst",
            Scene(
                jobs=[
                    Job(
                        role="copy",
                        client_id="",
                        group="processing-group",
                        transactional_id="transactional_copy",
                        for_ms=8_000,
                        poll_ms=1_000,
                        settings={"isolation_level": "read_committed"},
                    )
                ],
                topics={"orders": 2, "copies": 2},
                preload={"orders": 300},
                feed_ms=50,
            ),
        ),
    ],
    "confluent-kafka": [
        ("producer", f"{_CONFLUENT}/README.md", _producer(**_HUNDRED)),
        ("consumer", f"{_CONFLUENT}/README.md", _consumer(poll_ms=1_000, **_WORK)),
        (
            "transactions",
            f"{_CONFLUENT}/examples/eos-transactions.py",
            Scene(
                jobs=[
                    Job(
                        role="copy",
                        client_id="",
                        group="eos-group",
                        transactional_id="eos-transactions.py",
                        for_ms=8_000,
                        poll_ms=1_000,
                        most=100,
                    )
                ],
                topics={"orders": 2, "copies": 2},
                preload={"orders": 300},
                feed_ms=20,
            ),
        ),
    ],
    "kafka-python": _KAFKA_PYTHON_EXAMPLES,
    "kafka-python-2": _KAFKA_PYTHON_EXAMPLES,
    "java-3.9": _JAVA,
    "java-4": _JAVA,
    "franz-go": [
        ("producing and consuming", f"{_FRANZ}/README.md", _producer(bursts=2)),
        ("consumer", f"{_FRANZ}/README.md", _consumer(poll_ms=8_000, **_WORK)),
        (
            "manual commits",
            f"{_FRANZ}/examples/group_committing/main.go",
            _consumer(poll_ms=8_000, commit="poll", rest_ms=200),
        ),
        (
            "transactional producer",
            f"{_FRANZ}/examples/transactions/produce/main.go",
            _transactions(bursts=10, records=10, every_ms=500),
        ),
    ],
    "sarama": [
        (
            "access log of an HTTP server",
            f"{_SARAMA}/http_server/http_server.go",
            _producer(
                {"Producer.RequiredAcks": 1, "Producer.Compression": "snappy", "Producer.Flush.Frequency": 500},
                bursts=100,
                every_ms=50,
                wait=False,
            ),
        ),
        (
            "data of an HTTP server",
            f"{_SARAMA}/http_server/http_server.go",
            _producer({"Producer.RequiredAcks": -1, "Producer.Retry.Max": 10}, bursts=50, every_ms=100),
        ),
        ("consumer group", f"{_SARAMA}/consumergroup/main.go", _consumer(most=1, **_WORK)),
        ("transactional producer", f"{_SARAMA}/txn_producer/main.go", _transactions(bursts=5, records=100)),
    ],
    "kafkajs": [
        ("producer", f"{_KAFKAJS}/getting-started", _producer(**(_ONE | {"client_id": "my-app"}))),
        ("consumer", f"{_KAFKAJS}/getting-started", _consumer(client_id="my-app", group="test-group", **_WORK)),
        (
            "transactions",
            f"{_KAFKAJS}/transactions",
            _producer(
                client_id="transactional-client", transactional_id="my-transactional-producer", bursts=3, records=2
            ),
        ),
    ],
}
