"""kafkajs, from its documentation: https://kafka.js.org/docs/configuration, /docs/producing and /docs/retry-detailed.

Settings are named by functions and their parameters. It has one backoff, `retry`, for calls and connections. It does
not document KIPs.
"""

from sluice.audit.subjects.client import CONSUMER, PRODUCER, Client, Known

CLIENT = Client(
    name="kafkajs",
    distribution="kafkajs",
    driver="node",
    settings=(
        Known("metadata.max.age.ms", ("producer.metadataMaxAge", "consumer.metadataMaxAge"), 300_000),
        Known("request.timeout.ms", ("kafka.requestTimeout",), 30_000),
        Known("retry.backoff.max.ms", ("kafka.retry.maxRetryTime",), 30_000),
        Known("retry.backoff.ms", ("kafka.retry.initialRetryTime",), 300),
        Known("retries", ("kafka.retry.retries",), 2_147_483_647, PRODUCER),  # if idempotent
        Known("socket.connection.setup.timeout.ms", ("kafka.connectionTimeout",), 1000),
        Known("security.protocol", ("security.protocol",), "PLAINTEXT"),
        Known("sasl.username", ("sasl.username",), None),
        Known("sasl.password", ("sasl.password",), None),
        Known("acks", ("send.acks",), "all", PRODUCER),
        Known("enable.idempotence", ("producer.idempotent",), False, PRODUCER),
        Known("max.in.flight.requests.per.connection", ("producer.maxInFlightRequests",), None, PRODUCER),
        Known("auto.offset.reset", ("subscribe.fromBeginning",), "latest", CONSUMER),
        Known("enable.auto.commit", ("run.autoCommit",), True, CONSUMER),
        Known("fetch.max.wait.ms", ("consumer.maxWaitTimeInMs",), 5000, CONSUMER),
        Known("heartbeat.interval.ms", ("consumer.heartbeatInterval",), 3000, CONSUMER),
        Known("session.timeout.ms", ("consumer.sessionTimeout",), 30_000, CONSUMER),
    ),
)
