"""All clients of the matrix."""

from collections.abc import Sequence

from tests.clients.aiokafka_driver import AIOKAFKA
from tests.clients.confluent_driver import CONFLUENT
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
    External("java-3.9", JAVA, {}),
    External("java-4", JAVA, {"alter-configs": "4.0 took the call out of its admin client"}),
)
