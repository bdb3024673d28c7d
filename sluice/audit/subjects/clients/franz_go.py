"""franz-go, from the comments on its options and the table of KIPs in its README: https://github.com/twmb/franz-go.

Settings are named by their options. It has one backoff, RetryBackoffFn, and none for connections; its default, from 250
ms to 5 s, is used with the limits of a probe. MetadataMinAge (5 s) delays the metadata request that precedes a resend,
so it is set to the same base. Produce requests are given up after RequestTimeoutOverhead plus ProduceRequestTimeout.
With idempotence, requests in flight cannot be limited. KIP-91 is supported "as a matter of opinion": records may expire
later.
"""

from sluice.audit.subjects.client import CONSUMER, PRODUCER, Client, Known

CLIENT = Client(
    name="franz-go",
    distribution="github.com/twmb/franz-go",
    driver="go/franz",
    settings=(
        Known("metadata.max.age.ms", ("MetadataMaxAge",), 300_000),
        Known("request.timeout.ms", ("RequestTimeoutOverhead",), 20_000),
        Known("retry.backoff.max.ms", ("RetryBackoffFn.max",), 5000),
        Known("retry.backoff.ms", ("RetryBackoffFn.base", "MetadataMinAge"), 250),
        Known("socket.connection.setup.timeout.ms", ("DialTimeout",), 10_000),
        Known("security.protocol", ("security.protocol",), "PLAINTEXT"),
        Known("sasl.username", ("sasl.username",), None),
        Known("sasl.password", ("sasl.password",), None),
        Known("acks", (), "all", PRODUCER),
        Known("delivery.timeout.ms", ("RecordDeliveryTimeout",), None, PRODUCER),
        Known("enable.idempotence", ("IdempotentWrite",), True, PRODUCER),
        Known("linger.ms", ("ProducerLinger",), 10, PRODUCER),
        Known("retries", ("RecordRetries",), 2_147_483_647, PRODUCER),  # documented as unlimited
        Known("fetch.max.wait.ms", ("FetchMaxWait",), 5000, CONSUMER),
        Known("heartbeat.interval.ms", ("HeartbeatInterval",), 3000, CONSUMER),
        Known("session.timeout.ms", ("SessionTimeout",), 45_000, CONSUMER),
    ),
    kips=frozenset({"KIP-13", "KIP-144", "KIP-219", "KIP-580", "KIP-601", "KIP-899", "KIP-951"}),
)
