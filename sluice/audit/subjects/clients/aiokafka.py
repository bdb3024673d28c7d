"""aiokafka, from the docstrings of 0.14: https://aiokafka.readthedocs.io/en/stable/api.html.

It has one backoff, retry_backoff_ms, for requests, metadata and connections, and no delivery timeout: a record fails
after up to two request_timeout_ms. It does not document KIPs, so settings that it lacks have the KIPs' defaults.
"""

from sluice.audit.subjects.client import CONSUMER, PRODUCER, Client, Known

CLIENT = Client(
    name="aiokafka",
    distribution="aiokafka",
    driver="sluice.audit.subjects.drivers.aiokafka_driver",
    settings=(
        Known("metadata.max.age.ms", ("metadata_max_age_ms",), 300_000),
        Known("request.timeout.ms", ("request_timeout_ms",), 40_000),
        Known("reconnect.backoff.max.ms", (), 1000),
        Known("reconnect.backoff.ms", (), 50),
        Known("retry.backoff.max.ms", (), 1000),
        Known("retry.backoff.ms", ("retry_backoff_ms",), 100),
        Known("security.protocol", ("security_protocol",), "PLAINTEXT"),
        Known("sasl.mechanism", ("sasl_mechanism",), None),
        Known("sasl.username", ("sasl_plain_username",), None),
        Known("sasl.password", ("sasl_plain_password",), None),
        Known("acks", ("acks",), 1, PRODUCER),
        Known("batch.size", ("max_batch_size",), 16_384, PRODUCER),
        Known("enable.idempotence", ("enable_idempotence",), False, PRODUCER),
        Known("linger.ms", ("linger_ms",), 0, PRODUCER),
        Known("auto.offset.reset", ("auto_offset_reset",), "latest", CONSUMER),
        Known("enable.auto.commit", ("enable_auto_commit",), True, CONSUMER),
        Known("fetch.max.wait.ms", ("fetch_max_wait_ms",), 500, CONSUMER),
        Known("heartbeat.interval.ms", ("heartbeat_interval_ms",), 3000, CONSUMER),
        Known("session.timeout.ms", ("session_timeout_ms",), 10_000, CONSUMER),
    ),
)
