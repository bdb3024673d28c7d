"""All clients of the matrix."""

from collections.abc import Sequence

from tests.clients.aiokafka_driver import AIOKAFKA
from tests.clients.confluent_driver import CONFLUENT
from tests.clients.driver import Driver
from tests.clients.kafka_python_admin import KAFKA_PYTHON

CLIENTS: Sequence[Driver] = (AIOKAFKA, KAFKA_PYTHON, CONFLUENT)
