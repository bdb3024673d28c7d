"""Tables of the broker properties and the topic configs.

Names and rules follow KafkaConfig and LogConfig of Kafka 4.4. Names starting with `sluice.` are sluice's own; quota
names come from KIP-13. All uses of properties are generated from these tables.
"""

from .kafka_releases import RELEASES
from .value_types import (
    INT_MAX,
    LONG_MAX,
    SHORT_MAX,
    Kind,
    bearer_token,
    boolean,
    choice,
    choice_or_none,
    counts,
    double,
    integer,
    listing,
    names,
    password,
    principals,
    rate,
    rates,
    replicas,
    size,
    some_names,
    text,
    users,
)

NO_EFFECT = "Kept and shown without effect."


class Property:
    """One row of a table. `spec` is the origin of the property: Kafka, a KIP, or sluice."""

    __slots__ = ("default", "doc", "kind", "name", "spec")

    def __init__(self, name: str, kind: Kind, default: str | None, spec: str, doc: str) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.spec = spec
        self.doc = doc

    @property
    def has_no_effect(self) -> bool:
        return self.doc == NO_EFFECT


_COMPRESSION = choice("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
_GZIP_LEVEL, _LZ4_LEVEL, _ZSTD_LEVEL = integer(1, 9, also=-1), integer(1, 17), integer(-(2**17), 22)
_CLEANUP = names("delete", "compact")
_TIMESTAMP_TYPE = choice("CreateTime", "LogAppendTime")
_MS = integer(0, LONG_MAX)
_FOREVER = str(LONG_MAX)
_WEEK_MS = "604800000"

_PROFILE = choice("by-version", "kip-13", *(f"kafka-{name}" for name in RELEASES))
# Their API versions are in broker/dispatch/advertised_versions.py.
AS_RELEASES = tuple(f"kafka-{name}" for name in ("0.9", "0.10.2", "1.1", "2.8", "3.4", "3.9", "4.4"))
_RELEASE = choice("all", *AS_RELEASES)
# More would leave one process no capacity for requests. A larger number is likely a typing error.
MOST_BROKERS = 100
_COUNT = integer(1)
_COUNT_INT = integer(1, INT_MAX)
_LIMIT = integer(0, INT_MAX)
_RETENTION = integer(1, also=-1)
_ENDPOINTS = listing("NAME://HOST:PORT, separated by commas")
_PROTOCOLS = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"

# Kafka's authorizers for KRaft and for ZooKeeper; their rules are the same.
_AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)

# fmt: off
# One row per entry reads better than one argument per line.
_ROWS: tuple[Property, ...] = (
    # Identity and addresses.
    Property("node.id", integer(0), "1", "KIP-631",
             "Id of the first broker; further brokers count up from it. Alias: broker.id."),
    Property("sluice.brokers", integer(1, MOST_BROKERS), "1", "sluice",
             "Number of brokers in this process, each on its own port. `serve --brokers` sets it."),
    Property("sluice.cluster.id", text(), "c2x1aWNlLWJyb2tlci0wMA", "sluice",
             "Cluster id; fixed, so that two runs send the same bytes. Alias: cluster.id."),
    Property("listeners", _ENDPOINTS, "PLAINTEXT://127.0.0.1:9092", "Kafka",
             "Addresses to listen on. An empty host means all interfaces. Kafka's default is PLAINTEXT://:9092."),
    Property("advertised.listeners", _ENDPOINTS, None, "Kafka",
             "Addresses that clients connect to, sent in metadata; unset: those of listeners."),
    Property("listener.security.protocol.map", listing("NAME:PROTOCOL, separated by commas"), _PROTOCOLS, "KIP-103",
             "Security protocol of each listener name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."),
    Property("inter.broker.listener.name", text(), None, "KIP-103",
             "Listener exempt from broker-wide connection limits, if there is another listener."),
    Property("controller.listener.names", listing(), "CONTROLLER", "KIP-631",
             "Listener names reserved for a controller; these entries of listeners are ignored."),
    Property("sluice.kafka.release", _RELEASE, "all", "sluice",
             "Kafka release whose API versions are served; all: every version. See also `serve --as`."),
    # Authorization.
    Property("authorizer.class.name", choice_or_none(*_AUTHORIZERS), "", "KIP-11",
             "Kafka's authorizer, which enforces ACLs. Empty: every operation is allowed."),
    Property("super.users", principals(), "", "KIP-11",
             "Principals allowed every operation, regardless of ACLs."),
    Property("allow.everyone.if.no.acl.found", boolean(), "false", "KIP-11",
             "Whether every principal is allowed every operation on a resource without ACLs."),
    # Limits of connections and requests.
    Property("max.connections", _LIMIT, str(INT_MAX), "KIP-402",
             "Maximum open connections; more wait. Per listener: listener.name.<name>.max.connections."),
    Property("max.connections.per.ip", _LIMIT, str(INT_MAX), "Kafka",
             "Maximum connections per IP address; more are closed at once. 0 requires overrides."),
    Property("max.connections.per.ip.overrides", counts(), "", "Kafka",
             "Maximum connections of individual IP addresses."),
    Property("max.connection.creation.rate", _LIMIT, str(INT_MAX), "KIP-612",
             "Maximum new connections per second; more wait. Also configurable per listener."),
    Property("socket.request.max.bytes", size(1, INT_MAX), "104857600", "Kafka",
             "Maximum request size in bytes; a larger request closes its connection."),
    Property("num.io.threads", integer(1, INT_MAX), "8", "Kafka",
             "Requests of more than 2 ms in progress at once, in all brokers; further ones wait."),
    Property("queued.max.request.bytes", size(1, also=-1), "536870912", "KIP-72",
             "Bytes of requests in flight above which no connection is read; -1, Kafka's default: no limit."),
    Property("sluice.queued.max.response.bytes", size(1, also=-1), "134217728", "sluice",
             "Response bytes waiting for clients that do not read, above which the slowest are closed; -1: no limit."),
    Property("connections.max.idle.ms", integer(-LONG_MAX - 1, LONG_MAX), "600000", "Kafka",
             "Idle time after which a connection is closed; negative: never."),
    Property("message.max.bytes", size(0, INT_MAX), "1048588", "Kafka",
             "Maximum size of a record batch, compressed."),
    Property("fetch.max.bytes", size(1024, INT_MAX), "57671680", "KIP-541",
             "Maximum size of a fetch response, regardless of the request."),
    Property("max.incremental.fetch.session.cache.slots", integer(0), "1000", "KIP-227",
             "Maximum number of incremental fetch sessions."),
    # TLS. These and the SASL properties can be set per listener: listener.name.<name>.<property> (listener_config.py).
    Property("ssl.keystore.type", text(), "PEM", "KIP-651",
             "Format of the key store; only PEM is supported. Kafka's default is JKS."),
    Property("ssl.keystore.location", text(), None, "Kafka",
             "PEM file with the private key and the certificate chain of a TLS listener."),
    Property("ssl.keystore.key", password(), None, "KIP-651",
             "Private key in PEM (PKCS#8), in place of ssl.keystore.location."),
    Property("ssl.keystore.certificate.chain", password(), None, "KIP-651",
             "Certificate chain of ssl.keystore.key in PEM, the broker's certificate first."),
    Property("ssl.keystore.password", password(), None, "Kafka",
             "Not supported for PEM; use ssl.key.password for an encrypted key."),
    Property("ssl.key.password", password(), None, "Kafka",
             "Password of an encrypted private key."),
    Property("ssl.truststore.type", text(), "PEM", "KIP-651",
             "Format of the trust store; only PEM is supported. Kafka's default is JKS."),
    Property("ssl.truststore.location", text(), None, "Kafka",
             "PEM file with the CA certificates that verify client certificates."),
    Property("ssl.truststore.certificates", password(), None, "KIP-651",
             "CA certificates in PEM, in place of ssl.truststore.location."),
    Property("ssl.truststore.password", password(), None, "Kafka",
             "Not supported for PEM."),
    Property("ssl.client.auth", choice("none", "requested", "required"), "none", "Kafka",
             "Whether clients must present a certificate. For SASL_SSL, effective only if set per listener."),
    Property("ssl.protocol", text(), "TLSv1.3", "Kafka",
             "Kept and shown without effect; use ssl.enabled.protocols."),
    Property("ssl.enabled.protocols", some_names("TLSv1.2", "TLSv1.3"), "TLSv1.2,TLSv1.3", "Kafka",
             "TLS versions that clients may use."),
    Property("ssl.cipher.suites", listing(), "", "Kafka",
             "Cipher suites that clients may use, by Java or OpenSSL name; empty: OpenSSL's defaults."),
    Property("ssl.principal.mapping.rules", text(), "DEFAULT", "KIP-371",
             "Rules that map the subject of a client certificate to a user name."),
    # SASL.
    Property("sasl.enabled.mechanisms", listing(), "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", "KIP-43",
             "SASL mechanisms; OAUTHBEARER is supported too. Kafka's default is GSSAPI."),
    Property("sasl.jaas.config", password(), None, "KIP-85",
             "JAAS login modules. Per mechanism: listener.name.<name>.<mechanism>.sasl.jaas.config."),
    Property("sasl.server.max.receive.size", integer(0, INT_MAX), "524288", "Kafka",
             "Maximum request size in bytes before a client has authenticated."),
    Property("connections.max.reauth.ms", integer(-LONG_MAX - 1, LONG_MAX), "0", "KIP-368",
             "Lifetime of an authentication; 0 or less: unlimited."),
    Property("connection.failed.authentication.delay.ms", integer(0, INT_MAX), "100", "KIP-306",
             "Delay of the error response and the close after a failed authentication."),
    Property("sluice.sasl.users", users(), "", "sluice",
             "Users for PLAIN and SCRAM that exist from the start, as NAME:PASSWORD, separated by commas."),
    # Topics.
    Property("auto.create.topics.enable", boolean(), "true", "Kafka",
             "Whether a metadata request for a missing topic creates it."),
    Property("delete.topic.enable", boolean(), "true", "Kafka",
             "Whether DeleteTopics may delete topics."),
    Property("num.partitions", _COUNT, "1", "Kafka",
             "Default number of partitions of a new topic."),
    Property("default.replication.factor", _COUNT, "1", "Kafka",
             "Default replication factor of a new topic."),
    Property("min.insync.replicas", _COUNT, "1", "Kafka",
             "Minimum number of in-sync replicas for acks=all."),
    Property("unclean.leader.election.enable", boolean(), "false", "Kafka",
             "Whether an out-of-sync replica may become leader if no in-sync replica is alive."),
    Property("replica.lag.time.max.ms", integer(1, LONG_MAX), "30000", "Kafka",
             "Time without a fetch after which a follower leaves the ISR."),
    Property("auto.leader.rebalance.enable", boolean(), "true", "Kafka",
             "Whether leadership returns to preferred leaders automatically."),
    Property("leader.imbalance.check.interval.seconds", integer(1, LONG_MAX), "300", "Kafka",
             "Interval of the preferred leader check."),
    # Kafka's default broker.session.timeout.ms, so that applications see production timing by default.
    Property("sluice.election.delay.ms", integer(0), "9000", "sluice",
             "Time from the loss or isolation of a broker to the election of new leaders."),
    Property("sluice.metadata.lag.ms", integer(0), "0", "sluice",
             "Age of the leaders and brokers that each broker returns in metadata responses."),
    Property("sluice.replication.delay.ms", integer(0), "0", "sluice",
             "Simulated replication latency; acks=all and consumers wait for it."),
    Property("sluice.coordinator.load.delay.ms", integer(0), "0", "sluice",
             "Time to load a coordinator after a move; until then, COORDINATOR_LOAD_IN_PROGRESS."),
    # The log.
    Property("log.dirs", text(), "", "Kafka",
             "Directory for the topics (one only); empty: topics are kept in memory. Alias: log.dir."),
    Property("sluice.metadata.truncate.damaged", boolean(), "false", "sluice",
             "Whether a start truncates a damaged metadata log at the damage, instead of failing."),
    Property("log.flush.interval.messages", integer(1, LONG_MAX), _FOREVER, "Kafka",
             "Records after which a partition is flushed to disk, before the response."),
    Property("log.flush.interval.ms", _MS, _FOREVER, "Kafka",
             "Time after which a partition is flushed to disk."),
    # Kafka never checks by default, so flush.ms has no effect there.
    Property("log.flush.scheduler.interval.ms", integer(1, LONG_MAX), "1000", "Kafka",
             "Interval of the check for partitions due to flush (flush.ms). Kafka's default is never."),
    Property("log.flush.offset.checkpoint.interval.ms", integer(1, INT_MAX), "60000", "Kafka",
             "Interval of the flush of all partitions, which shortens recovery after a crash."),
    Property("log.flush.start.offset.checkpoint.interval.ms", integer(1, INT_MAX), "60000", "Kafka",
             "Interval of the checkpoint of log start offsets."),
    Property("log.index.interval.bytes", integer(0, INT_MAX), "4096", "Kafka",
             "Bytes of a segment per index entry."),
    Property("log.index.size.max.bytes", size(4, INT_MAX), "10485760", "Kafka",
             "Maximum size of an index; a full index rolls the segment."),
    Property("log.segment.delete.delay.ms", _MS, "60000", "Kafka",
             "Time before the files of deleted segments and topics are removed."),
    Property("log.retention.hours", _RETENTION, "168", "Kafka",
             "Age in hours after which segments are deleted; -1: no limit."),
    Property("log.retention.minutes", _RETENTION, None, "Kafka",
             "Age in minutes after which segments are deleted; overrides the hours."),
    Property("log.retention.ms", integer(1, LONG_MAX, also=-1), None, "Kafka",
             "Age after which segments are deleted; overrides minutes and hours."),
    Property("log.retention.bytes", size(0, also=-1), "-1", "Kafka",
             "Partition size above which the oldest segments are deleted; -1: no limit."),
    Property("log.retention.check.interval.ms", integer(1, LONG_MAX), "300000", "Kafka",
             "Interval of the check for segments to delete."),
    # 4 MiB instead of Kafka's 1 GiB: retention deletes whole segments, so in memory a segment must be small compared
    # with the limit. With log.dirs the default is Kafka's. At least 14 as up to Kafka 3.9 (4.0 requires 1 MiB): a
    # retention test needs many segments.
    Property("log.segment.bytes", size(14, INT_MAX), "4194304", "Kafka",
             "Maximum segment size, the unit of retention. Default with log.dirs: 1073741824."),
    Property("log.roll.ms", integer(1, LONG_MAX), None, "Kafka",
             "Time between a segment's first record and a new record that rolls the segment; unset: log.roll.hours."),
    Property("log.roll.hours", _COUNT, "168", "Kafka",
             "Same as log.roll.ms, in hours."),
    Property("log.roll.jitter.ms", _MS, None, "Kafka",
             "Maximum time by which a segment rolls early, to spread the rolls; unset: log.roll.jitter.hours."),
    Property("log.roll.jitter.hours", integer(0), "0", "Kafka",
             "Same as log.roll.jitter.ms, in hours."),
    Property("log.cleanup.policy", _CLEANUP, "delete", "KIP-71",
             "Cleanup of old segments: delete, compact, both, or none (empty)."),
    Property("log.cleaner.enable", boolean(), "true", "Kafka",
             "Whether logs are compacted."),
    Property("log.cleaner.backoff.ms", _MS, "15000", "Kafka",
             "Interval of the check for logs to compact."),
    Property("log.cleaner.min.cleanable.ratio", double(0, 1), "0.5", "Kafka",
             "Minimum ratio of uncompacted bytes to all bytes of a log for compaction."),
    Property("log.cleaner.min.compaction.lag.ms", _MS, "0", "KIP-58",
             "Minimum age of a record for compaction."),
    Property("log.cleaner.max.compaction.lag.ms", integer(1, LONG_MAX), _FOREVER, "KIP-354",
             "Maximum age of a record before its log is compacted regardless of the ratio."),
    Property("log.cleaner.delete.retention.ms", _MS, "86400000", "KIP-534",
             "Time that a compacted log keeps tombstones, from their first compaction."),
    Property("log.cleaner.dedupe.buffer.size", integer(0, LONG_MAX), "134217728", "Kafka",
             "Memory in bytes for the keys of one compaction; a log with more keys needs several passes."),
    Property("log.cleaner.io.buffer.load.factor", double(0, LONG_MAX), "0.9", "Kafka",
             "Maximum fill ratio of log.cleaner.dedupe.buffer.size."),
    Property("compression.type", _COMPRESSION, "producer", "Kafka",
             "Compression of the log; producer: batches are kept as received."),
    Property("compression.gzip.level", _GZIP_LEVEL, "-1", "KIP-390",
             "Compression level if compression.type is gzip."),
    Property("compression.lz4.level", _LZ4_LEVEL, "9", "KIP-390",
             "Kept and shown without effect: the lz4 library has one level."),
    Property("compression.zstd.level", _ZSTD_LEVEL, "3", "KIP-390",
             "Compression level if compression.type is zstd."),
    Property("log.message.timestamp.type", _TIMESTAMP_TYPE, "CreateTime", "KIP-32",
             "Whether record timestamps are the producer's or the time of the append."),
    Property("log.message.timestamp.before.max.ms", _MS, _FOREVER, "KIP-937",
             "Maximum time by which a record timestamp may precede the broker's clock."),
    Property("log.message.timestamp.after.max.ms", _MS, "3600000", "KIP-937",
             "Maximum time by which a record timestamp may follow the broker's clock."),
    Property("log.message.downconversion.enable", boolean(), "true", "KIP-283",
             "Whether records are converted for consumers that support only older formats."),
    Property("producer.id.expiration.ms", _COUNT, "86400000", "KIP-854",
             "Time without a write after which the state of a producer id expires."),
    Property("producer.id.expiration.check.interval.ms", _COUNT_INT, "600000", "Kafka",
             "Interval of the check for expired producer ids."),
    Property("sluice.log.memory.bytes", size(1), "1073741824", "sluice",
             "Memory for the records of all partitions; above it, the oldest segments are deleted."),
    # 64 KiB covers batches of a producer's default size (16 KiB). Validating every record of a 1 MiB batch takes longer
    # than all its other processing.
    Property("sluice.record.validation.max.bytes", size(0, also=-1), "65536", "sluice",
             "Maximum size of a batch whose records are all validated (else header and CRC); -1: no limit, as Kafka."),
    # Groups.
    Property("group.initial.rebalance.delay.ms", integer(0, INT_MAX), "3000", "KIP-134",
             "Time that the first rebalance of an empty group waits for more members."),
    Property("group.min.session.timeout.ms", integer(0, INT_MAX), "6000", "Kafka",
             "Minimum session timeout that a member may request."),
    Property("group.max.session.timeout.ms", integer(0, INT_MAX), "1800000", "Kafka",
             "Maximum session timeout that a member may request."),
    Property("group.max.size", integer(1, INT_MAX), str(INT_MAX), "KIP-389",
             "Maximum number of members of a group."),
    Property("group.coordinator.rebalance.protocols",
             some_names("classic", "consumer", "share", "streams", required="classic"),
             "classic,consumer,streams", "KIP-848",
             "Enabled group protocols; requests of others fail with UNSUPPORTED_VERSION."),
    Property("group.consumer.session.timeout.ms", _COUNT_INT, "45000", "KIP-848",
             "Time without a heartbeat after which a member of a consumer group is removed."),
    Property("group.consumer.min.session.timeout.ms", _COUNT_INT, "45000", "KIP-848",
             "Minimum session timeout configurable for a consumer group."),
    Property("group.consumer.max.session.timeout.ms", _COUNT_INT, "60000", "KIP-848",
             "Maximum session timeout configurable for a consumer group."),
    Property("group.consumer.heartbeat.interval.ms", _COUNT_INT, "5000", "KIP-848",
             "Heartbeat interval of the members of consumer groups."),
    Property("group.consumer.min.heartbeat.interval.ms", _COUNT_INT, "5000", "KIP-848",
             "Minimum heartbeat interval configurable for a consumer group."),
    Property("group.consumer.max.heartbeat.interval.ms", _COUNT_INT, "15000", "KIP-848",
             "Maximum heartbeat interval configurable for a consumer group."),
    Property("group.consumer.assignment.interval.ms", integer(0, INT_MAX), "1000", "KIP-1263",
             "Minimum time between two target assignments of a consumer group."),
    Property("group.consumer.min.assignment.interval.ms", integer(0, INT_MAX), "0", "KIP-1263",
             "Minimum assignment interval configurable for a consumer group."),
    Property("group.consumer.max.assignment.interval.ms", integer(0, INT_MAX), "15000", "KIP-1263",
             "Maximum assignment interval configurable for a consumer group."),
    Property("group.consumer.max.size", _COUNT_INT, str(INT_MAX), "KIP-848",
             "Maximum number of members of a consumer group."),
    Property("group.consumer.assignors", some_names("uniform", "range"), "uniform,range", "KIP-848",
             "Server-side assignors that members may select; the first is the default."),
    Property("group.consumer.regex.refresh.interval.ms", integer(10_000, INT_MAX), "600000", "KIP-848",
             "Interval at which subscribed regular expressions are resolved again without a topic change."),
    Property("group.consumer.migration.policy", choice("bidirectional", "upgrade", "downgrade", "disabled"),
             "bidirectional", "KIP-848",
             "Allowed conversions between the classic and the consumer protocol for groups with members."),
    Property("offset.metadata.max.bytes", integer(0, INT_MAX), "4096", "Kafka",
             "Maximum size of the metadata committed with an offset."),
    Property("offsets.retention.minutes", integer(1, INT_MAX), "10080", "KIP-211",
             "Retention of offsets of a group without members or a topic without subscribers."),
    Property("offsets.retention.check.interval.ms", integer(1, LONG_MAX), "600000", "Kafka",
             "Interval of the check for expired offsets."),
    # The topics of the coordinators.
    Property("offsets.commit.timeout.ms", integer(1, INT_MAX), "5000", "Kafka",
             "Maximum time that a response waits for the replication of its group's records."),
    Property("offsets.topic.num.partitions", _COUNT, "50", "Kafka",
             "Partitions of __consumer_offsets, which the first use of a group creates."),
    Property("offsets.topic.replication.factor", integer(1, SHORT_MAX), "3", "Kafka",
             "Replication factor of __consumer_offsets, at most the number of brokers."),
    Property("offsets.topic.segment.bytes", size(2**20, INT_MAX), "104857600", "Kafka",
             "Maximum segment size of __consumer_offsets."),
    Property("transaction.state.log.num.partitions", _COUNT, "50", "KIP-98",
             "Partitions of __transaction_state, which the first transactional producer creates."),
    Property("transaction.state.log.replication.factor", integer(1, SHORT_MAX), "3", "KIP-98",
             "Replication factor of __transaction_state, at most the number of brokers."),
    Property("transaction.state.log.segment.bytes", size(2**20, INT_MAX), "104857600", "KIP-98",
             "Maximum segment size of __transaction_state."),
    Property("share.coordinator.state.topic.num.partitions", _COUNT, "50", "KIP-932",
             "Partitions of __share_group_state, which the first share group creates."),
    Property("share.coordinator.state.topic.replication.factor", _COUNT, "3", "KIP-932",
             "Replication factor of __share_group_state, at most the number of brokers."),
    Property("share.coordinator.state.topic.min.isr", _COUNT, "2", "KIP-932",
             "min.insync.replicas of __share_group_state."),
    Property("share.coordinator.state.topic.segment.bytes", size(2**20, INT_MAX), "104857600", "KIP-932",
             "Maximum segment size of __share_group_state."),
    Property("share.coordinator.snapshot.update.records.per.snapshot", integer(0, 500), "500", "KIP-932",
             "Update records of a share partition between two snapshots."),
    Property("share.coordinator.write.timeout.ms", _COUNT_INT, "5000", "KIP-932",
             "Maximum time that a response waits for the replication of share state."),
    Property("share.coordinator.state.topic.prune.interval.ms", _COUNT_INT, "300000", "KIP-932",
             "Interval at which old records of __share_group_state are deleted."),
    Property("share.coordinator.cold.partition.snapshot.interval.ms", _COUNT_INT, "300000", "KIP-932",
             "Age of the last snapshot at which an idle share partition gets another one."),
    # Transactions.
    Property("transaction.max.timeout.ms", _COUNT, "900000", "KIP-98",
             "Maximum timeout that a transactional producer may request."),
    Property("transaction.abort.timed.out.transaction.cleanup.interval.ms", _COUNT, "10000", "KIP-98",
             "Interval of the check that aborts transactions open for longer than their timeout."),
    Property("transaction.partition.verification.enable", boolean(), "true", "KIP-890",
             "Whether partitions reject transactional writes unless they were added to the transaction."),
    Property("add.partitions.to.txn.retry.backoff.ms", _COUNT, "20", "KIP-890",
             "Delay before a write is retried while its producer's last transaction is being completed."),
    Property("add.partitions.to.txn.retry.backoff.max.ms", integer(0), "100", "KIP-890",
             "Maximum total time of these retries."),
    Property("transactional.id.expiration.ms", _COUNT, "604800000", "KIP-98",
             "Time without use after which a transactional id expires."),
    Property("transaction.remove.expired.transaction.cleanup.interval.ms", _COUNT, "3600000", "KIP-98",
             "Interval of the check for expired transactional ids."),
    # The purgatory.
    Property("fetch.purgatory.purge.interval.requests", integer(), "1000", "Kafka",
             "Completed fetches that may remain in watcher lists before a purge."),
    Property("producer.purgatory.purge.interval.requests", integer(), "1000", "Kafka",
             "Completed produce requests that may remain in watcher lists before a purge."),
    # Quotas.
    Property("quota.producer.default", rate(), None, "KIP-13",
             "Produce quota, in bytes per second, of each client id without its own quota."),
    Property("quota.consumer.default", rate(), None, "KIP-13",
             "Fetch quota, in bytes per second, of each client id without its own quota."),
    Property("quota.producer.override", rates(), "", "KIP-13",
             "Produce quotas of individual client ids."),
    Property("quota.consumer.override", rates(), "", "KIP-13",
             "Fetch quotas of individual client ids."),
    Property("quota.window.num", _COUNT, "11", "KIP-13",
             "Number of quota windows kept, including the current one."),
    Property("quota.window.size.seconds", _COUNT, "1", "KIP-13",
             "Length of a quota window."),
    Property("controller.quota.window.num", _COUNT, "11", "KIP-599",
             "Windows over which unused controller mutation quota accumulates."),
    Property("controller.quota.window.size.seconds", _COUNT, "1", "KIP-599",
             "Length of a controller mutation window."),
    Property("client.quota.callback.class", text(), None, "KIP-257",
             "Dotted path of a Python class that assigns clients to quotas and sets the limits."),
    Property("quota.profile", _PROFILE, "by-version", "sluice",
             "Throttling behaviour: by request version, as specified in KIP-13, or as in a Kafka release."),
    # Client telemetry.
    Property("sluice.telemetry", boolean(), "false", "sluice",
             "Whether clients' metrics are accepted (KIP-714); Kafka requires a plugin for that."),
    Property("telemetry.max.bytes", integer(1), "1048576", "KIP-714",
             "Maximum size of one push of client metrics, compressed."),
    # The journal.
    # 0 by default: the journal makes a small request a seventh more expensive.
    Property("sluice.journal.events", integer(0, INT_MAX), "0", "sluice",
             "Number of latest events that the journal keeps in memory, such as 16384; 0 disables the journal."),
    Property("sluice.journal.record.hashes", boolean(), "false", "sluice",
             "Whether the journal hashes produced records, to recognize repeated batches without a producer id."),
    Property("sluice.journal.topic", boolean(), "false", "sluice",
             "Whether the journal can also be consumed as the topic __sluice_journal."),
    # The admin port and metrics.
    Property("sluice.admin.host", text(), "127.0.0.1", "sluice",
             "Address of the admin HTTP port; a non-loopback address requires sluice.admin.token."),
    Property("sluice.admin.token", bearer_token(), "", "sluice",
             "Bearer token that the admin HTTP port requires; empty: no authentication."),
    # 200: each is about ten time series, and 2,000 are a light scrape.
    Property("sluice.metrics.client.ids.max", integer(0), "200", "sluice",
             "Maximum client ids, and fault rules, with separate metrics; the others share __other__."),
)
# fmt: on

PROPERTIES = {row.name: row for row in _ROWS}

# fmt: off
# Columns: config, kind, default, the broker property that is its default, description. A row without a description is
# kept and shown without effect.
_TOPIC_ROWS: tuple[tuple[str, Kind, str | None, str | None, str], ...] = (
    ("cleanup.policy", _CLEANUP, "delete", "log.cleanup.policy",
     "Cleanup of old segments: delete, compact, both, or none (empty)."),
    ("compression.type", _COMPRESSION, "producer", "compression.type",
     "Compression of the log; producer: batches are kept as received."),
    ("max.message.bytes", integer(0), "1048588", "message.max.bytes", "Maximum size of a record batch, compressed."),
    ("message.downconversion.enable", boolean(), "true", "log.message.downconversion.enable",
     "Whether records are converted for consumers that support only older formats."),
    ("message.timestamp.type", _TIMESTAMP_TYPE, "CreateTime", "log.message.timestamp.type",
     "Whether record timestamps are the producer's or the time of the append."),
    ("message.timestamp.before.max.ms", _MS, _FOREVER, "log.message.timestamp.before.max.ms",
     "Maximum time by which a record timestamp may precede the broker's clock."),
    ("message.timestamp.after.max.ms", _MS, "3600000", "log.message.timestamp.after.max.ms",
     "Maximum time by which a record timestamp may follow the broker's clock."),
    ("min.insync.replicas", integer(1), "1", "min.insync.replicas", "Minimum number of in-sync replicas for acks=all."),
    ("retention.bytes", integer(-LONG_MAX - 1, LONG_MAX), "-1", "log.retention.bytes",
     "Partition size above which the oldest segments are deleted; negative: no limit."),
    ("retention.ms", integer(-1, LONG_MAX), _WEEK_MS, "log.retention.ms",
     "Age after which segments are deleted; -1: no limit."),
    # At least 1 MiB since Kafka 4.0; internal.segment.bytes is Kafka's own way around that limit, for tests.
    ("segment.bytes", integer(2**20), "4194304", "log.segment.bytes", "Maximum segment size."),
    ("internal.segment.bytes", integer(1), None, None, "Maximum segment size; overrides segment.bytes."),
    ("compression.gzip.level", _GZIP_LEVEL, "-1", "compression.gzip.level",
     "Compression level if compression.type is gzip."),
    ("compression.lz4.level", _LZ4_LEVEL, "9", "compression.lz4.level", ""),  # the library has one level
    ("compression.zstd.level", _ZSTD_LEVEL, "3", "compression.zstd.level",
     "Compression level if compression.type is zstd."),
    ("delete.retention.ms", _MS, "86400000", "log.cleaner.delete.retention.ms",
     "Time that a compacted log keeps tombstones, from their first compaction."),
    ("errors.deadletterqueue.group.enable", boolean(), "false", None, ""),
    ("file.delete.delay.ms", _MS, "60000", "log.segment.delete.delay.ms",
     "Time before the files of deleted segments are removed."),
    ("flush.messages", integer(1, LONG_MAX), _FOREVER, "log.flush.interval.messages",
     "Records after which the log is flushed to disk, before the response."),
    ("flush.ms", _MS, _FOREVER, "log.flush.interval.ms", "Time after which the log is flushed to disk."),
    ("follower.replication.throttled.replicas", replicas(), "", None, ""),
    ("index.interval.bytes", integer(0), "4096", "log.index.interval.bytes",
     "Bytes of a segment per index entry."),
    ("leader.replication.throttled.replicas", replicas(), "", None, ""),
    ("local.retention.bytes", integer(-2, LONG_MAX), "-2", None, ""),
    ("local.retention.ms", integer(-2, LONG_MAX), "-2", None, ""),
    ("max.compaction.lag.ms", integer(1, LONG_MAX), _FOREVER, "log.cleaner.max.compaction.lag.ms",
     "Maximum age of a record before its log is compacted regardless of the ratio."),
    ("max.decompressed.message.bytes", integer(1, INT_MAX - 8), str(INT_MAX - 8), None, ""),  # Java's longest array
    ("min.cleanable.dirty.ratio", double(0, 1), "0.5", "log.cleaner.min.cleanable.ratio",
     "Minimum ratio of uncompacted bytes to all bytes of a log for compaction."),
    ("min.compaction.lag.ms", _MS, "0", "log.cleaner.min.compaction.lag.ms", "Minimum age of a record for compaction."),
    ("preallocate", boolean(), "false", None, ""),
    ("remote.copy.lag.bytes", integer(-1, LONG_MAX), "-1", None, ""),
    ("remote.copy.lag.ms", integer(-1, LONG_MAX), "0", None, ""),
    ("remote.log.copy.disable", boolean(), "false", None, ""),
    ("remote.log.delete.on.disable", boolean(), "false", None, ""),
    ("remote.storage.enable", boolean(), "false", None, ""),
    ("segment.index.bytes", integer(4), "10485760", "log.index.size.max.bytes",
     "Maximum size of an index; a full index rolls the segment."),
    ("segment.jitter.ms", _MS, "0", "log.roll.jitter.ms",
     "Maximum time by which a segment rolls early, to spread the rolls."),
    ("segment.ms", integer(1, LONG_MAX), _WEEK_MS, "log.roll.ms",
     "Time between a segment's first record and a new record that rolls the segment."),
    ("unclean.leader.election.enable", boolean(), "false", "unclean.leader.election.enable",
     "Whether an out-of-sync replica may become leader if no in-sync replica is alive."),
)
# fmt: on

TOPIC_PROPERTIES = {
    name: Property(name, kind, default, "Kafka", doc or NO_EFFECT) for name, kind, default, _, doc in _TOPIC_ROWS
}
TOPIC_DEFAULT_OF = {
    name: broker_property for name, _, _, broker_property, _ in _TOPIC_ROWS if broker_property is not None
}
