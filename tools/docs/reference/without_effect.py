"""Why configs of Kafka 4.4 have no effect, for the page of properties.

`REASONS` has each of them once, as a pattern (fnmatch). Alterations of some are still validated as in Kafka, such as
the number of threads.
"""

from fnmatch import fnmatchcase

REASONS: dict[str, tuple[str, ...]] = {
    "Threads of Kafka's broker, which sluice does not have": (
        "background.threads", "group.coordinator.background.threads", "group.coordinator.threads",
        "*.assignor.offload.enable", "log.cleaner.threads", "num.network.threads",
        "num.recovery.threads.per.data.dir", "num.replica.alter.log.dirs.threads", "num.replica.fetchers",
        "share.coordinator.threads",
    ),
    "Buffers, queues and batches in memory": (
        "*coordinator.append.linger.ms", "*.cached.buffer.max.bytes", "*.load.buffer.size",
        "delete.records.purgatory.purge.interval.requests", "queued.max.requests",
        "share.fetch.purgatory.purge.interval.requests",
    ),
    "Sockets of the operating system": (
        "socket.listen.backlog.size",
        "socket.receive.buffer.bytes",
        "socket.send.buffer.bytes",
    ),
    "Tuning of disk access": (
        "log.cleaner.io.buffer.size", "log.cleaner.io.max.bytes.per.second", "log.preallocate", "preallocate",
        "replica.high.watermark.checkpoint.interval.ms",
    ),
    "Several log directories: a broker has one": (
        "alter.log.dirs.replication.quota.window.*",
        "cordoned.log.dirs",
        "log.dir.failure.timeout.ms",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ),
    "Connections between brokers: they are in one process": (
        "replica.fetch.backoff.ms", "replica.fetch.min.bytes", "replica.fetch.response.max.bytes",
        "replica.fetch.wait.max.ms", "replica.socket.*", "replication.quota.window.*",
        "sasl.mechanism.inter.broker.protocol", "security.inter.broker.protocol", "socket.connection.setup.timeout.*",
        "ssl.endpoint.identification.algorithm",
    ),
    "The client side of SASL, for connections between brokers": (
        "sasl.client.callback.handler.class", "sasl.login.*", "sasl.oauthbearer.assertion.*",
        "sasl.oauthbearer.client.credentials.*", "sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
    ),
    "The KRaft quorum and its log: the controller is in the same process": (
        "controller.performance.*", "controller.quorum.*", "controller.socket.timeout.ms", "early.start.listeners",
        "internal.metadata.*", "metadata.log.*", "metadata.max.*", "process.roles", "server.max.startup.time.ms",
        "sasl.mechanism.controller.protocol",
    ),
    "Times of failures, which have properties of their own: `sluice.election.delay.ms` (sessions of brokers) and fault "
    "rules (a stop with or without a controlled shutdown); an unclean election is made at once": (
        "broker.heartbeat.interval.ms", "broker.session.timeout.ms", "controlled.shutdown.enable",
        "initial.broker.registration.timeout.ms", "unclean.leader.election.interval.ms",
    ),
    "Tiered storage, which sluice does not have": (
        "follower.fetch.last.tiered.offset.enable", "*local.retention.*", "*remote.copy.lag.*",
        "remote.fetch.max.wait.ms", "remote.list.offsets.request.timeout.ms", "remote.log.*",
    ),
    "Kafka's metrics; `sluice.telemetry` replaces a reporter that receives the metrics of clients": (
        "kafka.metrics.*",
        "metric.reporters",
        "metrics.*",
    ),
    "Classes in Java; fault rules can answer with the error of a policy": (
        "alter.config.policy.class.name", "config.providers", "create.topic.policy.class.name",
        "group.share.dlq.manager.class.name", "group.share.persister.class.name",
        "group.streams.topology.description.plugin.class", "principal.builder.class",
        "sasl.oauthbearer.jwt.validator.class", "sasl.server.callback.handler.class", "security.providers",
        "ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.provider", "ssl.secure.random.implementation",
        "ssl.trustmanager.algorithm",
    ),
    "Kerberos, which sluice does not have": ("sasl.kerberos.*",),
    "Delegation tokens, whose APIs are not served": ("delegation.token.*",),
    "Retries of the load of keys, which are in a file or at a loopback address": (
        "sasl.oauthbearer.jwks.endpoint.retry.*",
    ),
    "The names in an altered key store: sluice accepts others, Kafka only if these configs allow it": (
        "ssl.allow.dn.changes",
        "ssl.allow.san.changes",
    ),
    "The compression of internal topics": ("*.topic.compression.codec",),
    "One compression level of the lz4 library": ("*compression.lz4.level",),
    "TLS versions, which `ssl.enabled.protocols` sets": ("ssl.protocol",),
    "Versions that Kafka 4.4 has not released, such as InitProducerId v6 (two-phase commit)": (
        "transaction.two.phase.commit.enable",
        "unstable.*.versions.enable",
    ),
    "Former configs, which Kafka 4.4 does not have": (
        "message.format.version",
        "message.timestamp.difference.max.ms",
    ),
}  # fmt: skip


def reasons_of(name: str) -> list[str]:
    """Return the reasons of a config; exactly one, if the table is complete."""
    return [reason for reason, patterns in REASONS.items() if any(fnmatchcase(name, one) for one in patterns)]
