"""sarama, from the comments in config.go: https://github.com/IBM/sarama.

Settings are named by their fields. Backoffs are constant unless a BackoffFunc is set, which the audit does not do. By
its changelog, it sleeps when throttled (KIP-219). An idempotent producer requires one open request.
"""

from sluice.audit.judge.model.observation import Role
from sluice.audit.subjects.client import ADMIN, CONSUMER, PRODUCER, Client, Known

_METADATA = "Metadata.Retry.Backoff"

CLIENT = Client(
    name="sarama",
    distribution="github.com/IBM/sarama",
    driver="go/sarama",
    settings=(
        Known("metadata.max.age.ms", ("Metadata.RefreshFrequency",), 600_000),
        Known("request.timeout.ms", ("Net.ReadTimeout",), 30_000),
        Known("retry.backoff.max.ms", (), 1000),  # not supported: KIP-580's default
        Known("retry.backoff.ms", ("Producer.Retry.Backoff", _METADATA), 100, PRODUCER),
        Known(
            "retry.backoff.ms",
            ("Consumer.Group.Rebalance.Retry.Backoff", "Consumer.Retry.Backoff", _METADATA),
            2000,
            CONSUMER,
        ),
        Known("retry.backoff.ms", ("Admin.Retry.Backoff", _METADATA), 100, ADMIN),
        Known("socket.connection.setup.timeout.ms", ("Net.DialTimeout",), 30_000),
        Known("security.protocol", ("security.protocol",), "PLAINTEXT"),
        Known("sasl.mechanism", ("Net.SASL.Mechanism",), None),
        Known("sasl.username", ("Net.SASL.User",), None),
        Known("sasl.password", ("Net.SASL.Password",), None),
        Known("acks", ("Producer.RequiredAcks",), 1, PRODUCER),
        Known("enable.idempotence", ("Producer.Idempotent",), False, PRODUCER),
        Known("linger.ms", ("Producer.Flush.Frequency",), 0, PRODUCER),
        Known("max.in.flight.requests.per.connection", ("Net.MaxOpenRequests",), 1, PRODUCER),
        Known("retries", ("Producer.Retry.Max",), 3, PRODUCER),
        Known("auto.offset.reset", (), "earliest", CONSUMER),
        Known("enable.auto.commit", ("Consumer.Offsets.AutoCommit.Enable",), True, CONSUMER),
        Known("fetch.max.wait.ms", ("Consumer.MaxWaitTime",), 500, CONSUMER),
        Known("heartbeat.interval.ms", ("Consumer.Group.Heartbeat.Interval",), 3000, CONSUMER),
        Known("session.timeout.ms", ("Consumer.Group.Session.Timeout",), 10_000, CONSUMER),
    ),
    kips=frozenset({"KIP-219"}),
    fixed={Role.PRODUCER: {"Net.MaxOpenRequests": 1}},
)
