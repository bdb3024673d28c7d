"""Models of clients that were compared with the clients themselves: the campaign `fleet-models`, docs/fleets.md."""

from collections.abc import Iterable

from msgspec.structs import replace

from .client_model import ClientModel

# Kafka 4.4's producer. Sluice's follows it, but checks request timeouts when they are due, and draws the wait for
# Metadata once.
KAFKA = ClientModel(request_timeout_restarts=True, reconnect_backoff_in_steps=True, metadata_backoff_redraws=True)
SLUICE = ClientModel()
# Before Kafka 3.7: a constant backoff of 100 ms without jitter, and a reconnect backoff of 50 ms as before KIP-144.
BEFORE_KIP_580 = ClientModel(
    retry_backoff_ms=100,
    retry_backoff_max_ms=100,
    reconnect_backoff_ms=50,
    reconnect_backoff_max_ms=50,
    request_timeout_restarts=True,
)
# aiokafka 0.14 has one constant backoff, for requests and failed connections. A batch fails after request_timeout_ms.
# It has one request in flight to each broker.
AIOKAFKA = ClientModel(
    acks="1",
    retry_backoff_ms=100,
    retry_backoff_max_ms=100,
    reconnect_backoff_ms=0,
    metadata_refresh="immediate",
    request_timeout_ms=40_000,
    socket_connection_setup_timeout_ms=40_000,
    socket_connection_setup_timeout_max_ms=40_000,
    delivery_timeout_ms=40_000,
    max_in_flight_requests_per_connection=1,
)
# librdkafka 2.16 doubles its reconnect backoff at the attempt and at its failure. Its jitter of -25 % to +50 % is a
# third around 1.125 of the base. Without idempotence, its default, 1,000,000 requests may be in flight.
LIBRDKAFKA = ClientModel(
    reconnect_backoff_ms=112.5,
    reconnect_backoff_max_ms=10_000,
    reconnect_backoff_multiplier=3,
    reconnect_backoff_jitter=1 / 3,
    retry_backoff_redraws=False,
    retry_backoff_wraps=True,
    leader_errors_count=False,
    metadata_refresh="query",
    request_timeout_ms=60_000,
    socket_connection_setup_timeout_ms=30_000,
    delivery_timeout_ms=300_000,
    metadata_max_age_ms=900_000,
    max_in_flight_requests_per_connection=1_000_000,
    retries_merge=True,
)
# A Fetch returns 10,000 records of 100 bytes at most: max.partition.fetch.bytes of 1 MiB.
_FETCHED = 10_000
SLUICE_CONSUMER = replace(SLUICE, role="consumer", records_per_request=_FETCHED)
KAFKA_CONSUMER = replace(
    KAFKA, role="consumer", records_per_request=_FETCHED, fetch_waits_for_metadata=False, coordinator_lookup="eager"
)
AIOKAFKA_CONSUMER = replace(
    AIOKAFKA,
    role="consumer",
    coordinator_lookup="eager",
    records_per_request=_FETCHED,
    fetch_waits_for_metadata=False,
    session_timeout_ms=10_000,
)
PRESETS = {
    "kafka-4.4": KAFKA, "java": KAFKA, "kip-580-before": BEFORE_KIP_580, "sluice": SLUICE, "aiokafka": AIOKAFKA,
    "librdkafka": LIBRDKAFKA, "kafka-4.4-consumer": KAFKA_CONSUMER, "java-consumer": KAFKA_CONSUMER,
    "sluice-consumer": SLUICE_CONSUMER, "aiokafka-consumer": AIOKAFKA_CONSUMER,
}  # fmt: skip
_OF_RESETS = "Metadata requests after reset connections are 0.4 times as many as the client's"
# Differences from the clients: a Kolmogorov-Smirnov distance over 0.1, or numbers that differ by half.
_DIFFERENCES = {
    "kafka-4.4-consumer": _OF_RESETS,
    "java-consumer": _OF_RESETS,
    "librdkafka": "connections and Metadata requests come at other times than the client's unless all brokers are down",
}


def caveats(names: Iterable[str]) -> list[str]:
    """Return how models differ from their clients, and which were not compared."""
    found = {name: _DIFFERENCES.get(name, "" if name in PRESETS else "not compared with its client") for name in names}
    return [f"{name}: {text}" for name, text in found.items() if text]
