"""Models of clients that were compared with the clients themselves (tests/property/test_fleet_models.py)."""

from .client_model import ClientModel

# Kafka 4.4's producer, and sluice's, which follows it.
KAFKA = ClientModel()
# The same before Kafka 3.7: a constant backoff of 100 ms without jitter, and a constant reconnect backoff of 50 ms as
# before KIP-144.
BEFORE_KIP_580 = ClientModel(
    retry_backoff_ms=100, retry_backoff_max_ms=100, reconnect_backoff_ms=50, reconnect_backoff_max_ms=50
)
PRESETS = {"kafka-4.4": KAFKA, "kip-580-before": BEFORE_KIP_580}
