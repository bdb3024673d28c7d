"""All clients of the matrix."""

from collections.abc import Sequence

from tests.clients.aiokafka_admin import AIOKAFKA
from tests.clients.confluent_admin import CONFLUENT
from tests.clients.driver import Driver
from tests.clients.external import External
from tests.clients.kafka_python_admin import KAFKA_PYTHON
from tests.clients.scenarios import CLASSIC_ONLY, WITHOUT_SHARE_CONSUMER, without_admin_calls
from tools.clients.built import JAVA

CLIENTS: Sequence[Driver] = (
    AIOKAFKA,
    KAFKA_PYTHON,
    CONFLUENT,
    External(
        "kafka-python-2",
        ("venv/bin/python", "-m", "tests.clients.kafka_python_2_driver"),
        dict.fromkeys(("null-header", "null-record"), "refuses to send it")
        | WITHOUT_SHARE_CONSUMER
        | CLASSIC_ONLY
        | without_admin_calls(
            "incremental-alter-configs", "alter-group-offsets", "delete-group-offsets", "client-quotas"
        )
        | {
            "acks-0": "loses records sent with acks=0 when it is closed soon afterwards",
            "group-cooperative": "has no cooperative assignor",
            "max-timestamp": "requests only timestamps of 0 and later",
            "log-dirs": "uses a version of DescribeLogDirs that Kafka 4 removed",
        },
    ),
    External("java-3.9", JAVA, WITHOUT_SHARE_CONSUMER),
    External("java-4", JAVA, {"alter-configs": "removed the call in 4.0"}),
    External(
        "franz-go",
        ("./driver",),
        {"static-consumer": "leaves without its instance id, which Kafka rejects, so it cannot rejoin at once"},
    ),
    External(
        "sarama",
        ("./driver",),
        CLASSIC_ONLY
        | WITHOUT_SHARE_CONSUMER
        | without_admin_calls()
        | {"max-timestamp": "uses a version of ListOffsets that is too old"},
    ),
    External(
        "kafkajs",
        ("node", "main.js"),
        CLASSIC_ONLY
        | WITHOUT_SHARE_CONSUMER
        | dict.fromkeys(
            ("compression-lz4", "compression-zstd"),
            "supports it only with packages that are compiled during installation",
        )
        | without_admin_calls("incremental-alter-configs", "delete-group-offsets", "client-quotas", "log-dirs")
        | {
            "null-header": "refuses to send it",
            "group-cooperative": "has no cooperative assignor",
            "static-classic": "has no static members",
            "max-timestamp": "requests only timestamps of 0 and later",
        },
    ),
)
