"""The remedies of a finding for the client libraries that it concerns."""

from collections.abc import Iterable

from sluice.lint.clients import ClientKey
from sluice.lint.rule import Remedy

NAMES = {
    "java": "Java client",
    "librdkafka": "librdkafka",
    "aiokafka": "aiokafka, kafka-python",
    "franz_go": "franz-go",
    "kafkajs": "KafkaJS",
}
# Parts of software names (KIP-511), and of the client ids that libraries without a software name send by default.
_BY_SOFTWARE = {
    "apache-kafka-java": "java",
    "rdkafka": "librdkafka",
    "confluent-kafka": "librdkafka",
    "kgo": "franz_go",
    "franz": "franz_go",
    "kafka-python": "aiokafka",
    "aiokafka": "aiokafka",
    "kafkajs": "kafkajs",
}


def library(client: ClientKey) -> str | None:
    """Return the name of the field of `Remedy` for the library of a client; None if it is not recognised."""
    for name in (client.software_name.lower(), client.client_id.lower()):
        for part, found in _BY_SOFTWARE.items():
            if part in name:
                return found
        if name == client.software_name.lower() and name:
            return None  # another library, whatever its client id is
    return None


def remedies(remedy: Remedy, clients: Iterable[ClientKey]) -> list[tuple[str, str]]:
    """Return the name of each library and its remedy: of those of the clients, or of all if one is not recognised."""
    found = {library(client) for client in clients}
    fields = [field for field in NAMES if not found or None in found or field in found]
    return [(NAMES[field], text) for field in fields if (text := getattr(remedy, field))]
