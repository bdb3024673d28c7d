"""All clients of the matrix."""

from collections.abc import Sequence

from tests.clients.aiokafka_admin import AIOKAFKA
from tests.clients.confluent_admin import CONFLUENT
from tests.clients.driver import Driver
from tests.clients.external import External
from tests.clients.kafka_python_admin import KAFKA_PYTHON

# Small heaps and the quickest start: a call takes milliseconds.
JAVA = (
    "java",
    "-Xmx256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Xshare:auto",
    "-cp",
    "classes:lib/*",
    "Main",
)

CLIENTS: Sequence[Driver] = (
    AIOKAFKA,
    KAFKA_PYTHON,
    CONFLUENT,
    External(
        "kafka-python-2",
        ("venv/bin/python", "-m", "tests.clients.kafka_python_2_driver"),
        dict.fromkeys(("null-header", "null-record"), "refuses to send one")
        | dict.fromkeys(
            ("group-consumer", "static-consumer", "resume-consumer", "describe-consumer-groups"),
            "has the classic protocol only",
        )
        | dict.fromkeys(
            (
                "incremental-alter-configs",
                "alter-group-offsets",
                "delete-group-offsets",
                "client-quotas",
                "list-transactions",
                "describe-transactions",
                "describe-producers",
            ),
            "has no such call in its admin client",
        )
        | {
            "acks-0": "loses what it sent with acks=0 when it is closed soon after",
            "group-cooperative": "has no cooperative assignor",
            "max-timestamp": "asks for timestamps of 0 and later only",
            "log-dirs": "asks with a version of DescribeLogDirs that Kafka 4 has dropped",
        },
    ),
    External("java-3.9", JAVA, {}),
    External("java-4", JAVA, {"alter-configs": "lost the call with 4.0"}),
    External(
        "franz-go",
        ("./driver",),
        {"static-consumer": "leaves without its instance id, which Kafka refuses; so it cannot come back at once"},
    ),
    External(
        "sarama",
        ("./driver",),
        dict.fromkeys(
            ("group-consumer", "static-consumer", "resume-consumer", "describe-consumer-groups"),
            "has the classic protocol only",
        )
        | dict.fromkeys(
            ("list-transactions", "describe-transactions", "describe-producers"), "has no such call in its admin client"
        )
        | {"max-timestamp": "asks with a version of ListOffsets that is too old for it"},
    ),
    External(
        "kafkajs",
        ("node", "main.js"),
        dict.fromkeys(
            ("group-consumer", "static-consumer", "resume-consumer", "describe-consumer-groups"),
            "has the classic protocol only",
        )
        | dict.fromkeys(
            ("compression-lz4", "compression-zstd"),
            "has it only through packages that are compiled when they are installed",
        )
        | dict.fromkeys(
            (
                "incremental-alter-configs",
                "delete-group-offsets",
                "client-quotas",
                "list-transactions",
                "describe-transactions",
                "describe-producers",
                "log-dirs",
            ),
            "has no such call in its admin client",
        )
        | {
            "null-header": "refuses to send one",
            "group-cooperative": "has no cooperative assignor",
            "static-classic": "has no static members",
            "max-timestamp": "asks for timestamps of 0 and later only",
        },
    ),
)
