"""kafka-python, from the docstrings of 3.0: https://kafka-python.readthedocs.io/.

Its changelog names KIP-144 (1.3.4), KIP-219 (2.1.0), KIP-91 (2.2.0) and KIP-601 (3.0.0):
https://github.com/dpkp/kafka-python/releases
"""

from sluice.audit.subjects.client import CONSUMER, PRODUCER, Client, Known

CLIENT = Client(
    name="kafka-python",
    distribution="kafka-python",
    driver="sluice.audit.subjects.drivers.kafka_python_driver",
    settings=(
        Known("max.in.flight.requests.per.connection", ("max_in_flight_requests_per_connection",), 5),
        Known("metadata.max.age.ms", ("metadata_max_age_ms",), 300_000),
        Known("reconnect.backoff.max.ms", ("reconnect_backoff_max_ms",), 30_000),
        Known("reconnect.backoff.ms", ("reconnect_backoff_ms",), 50),
        Known("request.timeout.ms", ("request_timeout_ms",), 30_000),
        Known("retry.backoff.max.ms", (), 1000),  # not supported: KIP-580's default
        Known("retry.backoff.ms", ("retry_backoff_ms",), 100),
        Known("security.protocol", ("security_protocol",), "PLAINTEXT"),
        Known("sasl.mechanism", ("sasl_mechanism",), None),
        Known("sasl.username", ("sasl_plain_username",), None),
        Known("sasl.password", ("sasl_plain_password",), None),
        Known("acks", ("acks",), "all", PRODUCER),
        Known("batch.size", ("batch_size",), 16_384, PRODUCER),
        Known("delivery.timeout.ms", ("delivery_timeout_ms",), 120_000, PRODUCER),
        Known("enable.idempotence", ("enable_idempotence",), True, PRODUCER),
        Known("linger.ms", ("linger_ms",), 0, PRODUCER),
        Known("max.block.ms", ("max_block_ms",), 60_000, PRODUCER),
        Known("retries", ("retries",), 2_147_483_647, PRODUCER),  # documented as infinite
        Known("auto.offset.reset", ("auto_offset_reset",), "latest", CONSUMER),
        Known("enable.auto.commit", ("enable_auto_commit",), True, CONSUMER),
        Known("fetch.max.wait.ms", ("fetch_max_wait_ms",), 500, CONSUMER),
        Known("heartbeat.interval.ms", ("heartbeat_interval_ms",), 3000, CONSUMER),
        Known("session.timeout.ms", ("session_timeout_ms",), 45_000, CONSUMER),
    ),
    kips=frozenset({"KIP-91", "KIP-144", "KIP-219", "KIP-601"}),
    otherwise=frozenset({"KIP-144/7"}),  # reconnect_backoff_max_ms has a separate default
)
