"""Client settings for the fault tests: clients time out and retry within seconds, not minutes."""

from collections.abc import Mapping
from typing import Any

Settings = Mapping[str, object]

SESSION_MS = 2000  # of a consumer in a group
# The same limits by each library's names: request timeout, delivery timeout, retry backoff, metadata age.
SETTINGS: dict[str, dict[str, dict[str, object]]] = {
    "aiokafka": {
        "both": {"request_timeout_ms": 3000, "retry_backoff_ms": 50, "metadata_max_age_ms": 1000},
        "producer": {"acks": "all", "enable_idempotence": True},
        "consumer": {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100},
    },
    "kafka-python": {
        "both": {
            "request_timeout_ms": 1000,
            "retry_backoff_ms": 50,
            "reconnect_backoff_ms": 50,
            "reconnect_backoff_max_ms": 200,
            "metadata_max_age_ms": 1000,
            "bootstrap_timeout_ms": 10000,
        },
        "producer": {"acks": "all", "enable_idempotence": True, "delivery_timeout_ms": 10000, "max_block_ms": 10000},
        "consumer": {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100},
    },
    "confluent-kafka": {
        "both": {
            "socket.timeout.ms": 1000,
            "socket.connection.setup.timeout.ms": 1000,
            "retry.backoff.ms": 50,
            "reconnect.backoff.ms": 50,
            "reconnect.backoff.max.ms": 200,
            "topic.metadata.refresh.interval.ms": 1000,
            "topic.metadata.refresh.fast.interval.ms": 50,
            "log_level": 0,
        },
        "producer": {
            "acks": "all",
            "enable.idempotence": True,
            "message.timeout.ms": 10000,
            "request.timeout.ms": 1000,
            "linger.ms": 0,
        },
        "consumer": {
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
            "fetch.error.backoff.ms": 50,
            "enable.auto.commit": False,
        },
    },
}


def settings_of(name: str, of: str, more: Settings) -> dict[str, Any]:
    """Return the settings of a producer or consumer; its client id is `producer` or `consumer`."""
    client_id = "client.id" if name == "confluent-kafka" else "client_id"
    return {client_id: of, **SETTINGS[name]["both"], **SETTINGS[name][of], **more}
