"""What can be configured, as two tables: the broker's properties, and the configs of a topic.

Names and rules are Kafka's (KafkaConfig and LogConfig of 4.4); ours start with `sluice.` or, for quotas, are those of
KIP-13. Parsing, validation, `sluice config list` and DescribeConfigs are made from these tables, by
sluice/config/broker_config.py.
"""

from .kafka_releases import RELEASES
from .value_types import (
    INT_MAX,
    LONG_MAX,
    Kind,
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

_NO_EFFECT = "Kept and shown; nothing here uses it."


class Property:
    """One row of a table. `spec` is who defined the property: Kafka, a KIP, or sluice."""

    __slots__ = ("default", "doc", "kind", "name", "spec")

    def __init__(self, name: str, kind: Kind, default: str | None, spec: str, doc: str) -> None:
        self.name = name
        self.kind = kind
        self.default = default
        self.spec = spec
        self.doc = doc

    @property
    def has_no_effect(self) -> bool:
        return self.doc == _NO_EFFECT


_COMPRESSION = choice("producer", "uncompressed", "gzip", "snappy", "lz4", "zstd")
_GZIP_LEVEL, _LZ4_LEVEL, _ZSTD_LEVEL = integer(1, 9, also=-1), integer(1, 17), integer(-(2**17), 22)
_CLEANUP = names("delete", "compact")
_TIMESTAMP_TYPE = choice("CreateTime", "LogAppendTime")
_MS = integer(0, LONG_MAX)
_FOREVER = str(LONG_MAX)
_WEEK_MS = "604800000"

_PROFILE = choice("by-version", "kip-13", *(f"kafka-{name}" for name in RELEASES))
# Those whose API versions are in broker/dispatch/advertised_versions.py.
AS_RELEASES = tuple(f"kafka-{name}" for name in ("0.9", "0.10.2", "1.1", "2.8", "3.4", "3.9", "4.4"))
_RELEASE = choice("all", *AS_RELEASES)
# As many as fit into one process with room for work; beyond it a mistake is more likely than a wish.
MOST_BROKERS = 100
_COUNT = integer(1)
_COUNT_INT = integer(1, INT_MAX)
_LIMIT = integer(0, INT_MAX)
_RETENTION = integer(1, also=-1)
_ENDPOINTS = listing("NAME://HOST:PORT, separated by commas")
_PROTOCOLS = "PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT,SASL_SSL:SASL_SSL"

# Kafka's own authorizer, with KRaft and with ZooKeeper; their rules are the same.
_AUTHORIZERS = (
    "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "kafka.security.authorizer.AclAuthorizer",
)

# fmt: off
# A row of a table is read across, not down.
_ROWS: tuple[Property, ...] = (
    # Who and where.
    Property("node.id", integer(0), "1", "KIP-631",
             "Id of the first broker; the others count on from it. broker.id is the same."),
    Property("sluice.brokers", integer(1, MOST_BROKERS), "1", "sluice",
             "Brokers in this process, on as many ports; `serve --brokers` sets it."),
    Property("sluice.cluster.id", text(), "c2x1aWNlLWJyb2tlci0wMA", "sluice",
             "Id of the cluster; fixed, so that two runs give the same bytes."),
    Property("listeners", _ENDPOINTS, "PLAINTEXT://127.0.0.1:9092", "Kafka",
             "Where to listen; no host is all interfaces. Kafka's default is PLAINTEXT://:9092."),
    Property("advertised.listeners", _ENDPOINTS, None, "Kafka",
             "Where clients are told to connect; unset: the listeners."),
    Property("listener.security.protocol.map", listing("NAME:PROTOCOL, separated by commas"), _PROTOCOLS, "KIP-103",
             "Security protocol of each listener name: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."),
    Property("inter.broker.listener.name", text(), None, "KIP-103",
             "Listener whose connections do not wait for the broker's limits, where there is another."),
    Property("controller.listener.names", listing(), "CONTROLLER", "KIP-631",
             "Listeners of a controller: taken from a Kafka's file, then left out."),
    Property("sluice.kafka.release", _RELEASE, "all", "sluice",
             "Whose API versions are advertised and served; all: the union. `serve --as` sets this and quota.profile."),
    # Who may do what.
    Property("authorizer.class.name", choice_or_none(*_AUTHORIZERS), "", "KIP-11",
             "Kafka's authorizer: clients may do what access control lists allow. Empty: everything."),
    Property("super.users", principals(), "", "KIP-11",
             "Principals that may do everything, whatever the lists say."),
    Property("allow.everyone.if.no.acl.found", boolean(), "false", "KIP-11",
             "Whether everybody may do everything to a resource that no entry of the lists applies to."),
    # What a connection may cost.
    Property("max.connections", _LIMIT, str(INT_MAX), "KIP-402",
             "Most connections at a time; more wait. Of one listener: listener.name.<name>.max.connections."),
    Property("max.connections.per.ip", _LIMIT, str(INT_MAX), "Kafka",
             "Most connections of an address; more are closed at once. 0 only with overrides."),
    Property("max.connections.per.ip.overrides", counts(), "", "Kafka",
             "The same of single addresses."),
    Property("max.connection.creation.rate", _LIMIT, str(INT_MAX), "KIP-612",
             "Most new connections a second; more wait. May be set for a listener, as the one above."),
    Property("socket.request.max.bytes", size(1, INT_MAX), "104857600", "Kafka",
             "Largest request; a larger one closes its connection."),
    Property("queued.max.request.bytes", size(1, also=-1), "536870912", "KIP-72",
             "Bytes of requests in flight past which no connection is read; -1, Kafka's default: no bound."),
    Property("connections.max.idle.ms", integer(-LONG_MAX - 1, LONG_MAX), "600000", "Kafka",
             "A connection idle for longer is closed; negative: never."),
    Property("message.max.bytes", size(0, INT_MAX), "1048588", "Kafka",
             "Largest record batch, compressed as it comes."),
    Property("fetch.max.bytes", size(1024, INT_MAX), "57671680", "KIP-541",
             "Most that one fetch response carries, whatever was asked for."),
    Property("max.incremental.fetch.session.cache.slots", integer(0), "1000", "KIP-227",
             "Fetch sessions kept at a time."),
    # TLS. These, and those of SASL, may be set for one listener: listener.name.<name>.<property> (listener_config.py).
    Property("ssl.keystore.type", text(), "PEM", "KIP-651",
             "Format of the key store; PEM is what is read. Kafka's default is JKS."),
    Property("ssl.keystore.location", text(), None, "Kafka",
             "A PEM file with the private key and the certificate chain of a TLS listener."),
    Property("ssl.keystore.key", password(), None, "KIP-651",
             "The private key itself, in place of ssl.keystore.location: PEM, PKCS#8."),
    Property("ssl.keystore.certificate.chain", password(), None, "KIP-651",
             "The certificate chain that belongs to ssl.keystore.key, PEM, the broker's own certificate first."),
    Property("ssl.keystore.password", password(), None, "Kafka",
             "Not for PEM, whose key may have ssl.key.password."),
    Property("ssl.key.password", password(), None, "Kafka",
             "Password of an encrypted private key."),
    Property("ssl.truststore.type", text(), "PEM", "KIP-651",
             "Format of the trust store; PEM is what is read. Kafka's default is JKS."),
    Property("ssl.truststore.location", text(), None, "Kafka",
             "A PEM file with the certificates that clients' certificates are checked against."),
    Property("ssl.truststore.certificates", password(), None, "KIP-651",
             "These certificates themselves, in place of ssl.truststore.location."),
    Property("ssl.truststore.password", password(), None, "Kafka",
             "Not for PEM."),
    Property("ssl.client.auth", choice("none", "requested", "required"), "none", "Kafka",
             "Whether clients are asked for a certificate. Of SASL_SSL listeners only if set for the listener."),
    Property("ssl.protocol", text(), "TLSv1.3", "Kafka",
             "Kept and shown; ssl.enabled.protocols decides."),
    Property("ssl.enabled.protocols", some_names("TLSv1.2", "TLSv1.3"), "TLSv1.2,TLSv1.3", "Kafka",
             "Versions of TLS that clients may use."),
    Property("ssl.cipher.suites", listing(), "", "Kafka",
             "Cipher suites that clients may use, by Java's or OpenSSL's names; empty: OpenSSL's defaults."),
    Property("ssl.principal.mapping.rules", text(), "DEFAULT", "KIP-371",
             "How the subject of a client's certificate becomes the name of a user."),
    # SASL.
    Property("sasl.enabled.mechanisms", listing(), "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512", "KIP-43",
             "Mechanisms of SASL listeners; OAUTHBEARER is the other one there is. Kafka's default is GSSAPI."),
    Property("sasl.jaas.config", password(), None, "KIP-85",
             "Login modules in JAAS syntax; of one mechanism: listener.name.<name>.<mechanism>.sasl.jaas.config."),
    Property("sasl.server.max.receive.size", integer(0, INT_MAX), "524288", "Kafka",
             "Largest request before a client has authenticated."),
    Property("connections.max.reauth.ms", integer(-LONG_MAX - 1, LONG_MAX), "0", "KIP-368",
             "How long an authentication lasts; 0 or less: as long as the connection."),
    Property("connection.failed.authentication.delay.ms", integer(0, INT_MAX), "100", "KIP-306",
             "How long a client that failed to authenticate waits for the answer and the end of its connection."),
    Property("sluice.sasl.users", users(), "", "sluice",
             "Users that are there from the start, for PLAIN and SCRAM: NAME:PASSWORD, separated by commas."),
    # Topics.
    Property("auto.create.topics.enable", boolean(), "true", "Kafka",
             "Whether asking for a topic that is not there creates it."),
    Property("delete.topic.enable", boolean(), "true", "Kafka",
             "Whether DeleteTopics may delete."),
    Property("num.partitions", _COUNT, "1", "Kafka",
             "Partitions of a topic created without a number."),
    Property("default.replication.factor", _COUNT, "1", "Kafka",
             "Replicas of a topic created without a number."),
    Property("min.insync.replicas", _COUNT, "1", "Kafka",
             "Replicas that must be in sync for acks=all."),
    Property("unclean.leader.election.enable", boolean(), "false", "Kafka",
             "Whether a replica that is not in sync may lead where none that is lives."),
    Property("replica.lag.time.max.ms", _COUNT, "30000", "Kafka",
             "When a follower that does not fetch is no longer in sync."),
    Property("auto.leader.rebalance.enable", boolean(), "true", "Kafka",
             "Whether preferred leaders get their partitions back by themselves."),
    Property("leader.imbalance.check.interval.seconds", _COUNT, "300", "Kafka",
             "How often."),
    # Kafka's broker.session.timeout.ms: what an application meets in production, unless a test is in a hurry.
    Property("sluice.election.delay.ms", integer(0), "9000", "sluice",
             "How long after a broker is gone, or isolated, others lead its partitions."),
    Property("sluice.metadata.lag.ms", integer(0), "0", "sluice",
             "How old what each broker knows, and tells its clients, of leaders and of other brokers is."),
    Property("sluice.replication.delay.ms", integer(0), "0", "sluice",
             "How long simulated replicas take to have what was appended; acks=all and consumers wait for them."),
    Property("sluice.coordinator.load.delay.ms", integer(0), "0", "sluice",
             "How long a coordinator takes to load what it takes over; until then COORDINATOR_LOAD_IN_PROGRESS."),
    # The log.
    Property("log.dirs", text(), "", "Kafka",
             "The directory in which topics are kept, one; empty: they are kept in memory. log.dir is the same."),
    Property("log.flush.interval.messages", integer(1, LONG_MAX), _FOREVER, "Kafka",
             "Records after which a partition is put on the disk before the producer is answered."),
    Property("log.flush.interval.ms", _MS, _FOREVER, "Kafka",
             "Time after which a partition is put on the disk."),
    # Kafka looks never unless told so, and then flush.ms has no effect.
    Property("log.flush.scheduler.interval.ms", integer(1, LONG_MAX), "1000", "Kafka",
             "How often it is looked for partitions whose flush.ms has passed. Kafka's default is never."),
    Property("log.flush.offset.checkpoint.interval.ms", integer(1, INT_MAX), "60000", "Kafka",
             "How often all partitions are put on the disk, so that a start after a crash has little to read."),
    Property("log.flush.start.offset.checkpoint.interval.ms", integer(1, INT_MAX), "60000", "Kafka",
             "How often it is written down where partitions start."),
    Property("log.index.interval.bytes", integer(0, INT_MAX), "4096", "Kafka",
             "Bytes of a segment for one entry of its indexes."),
    Property("log.index.size.max.bytes", size(4, INT_MAX), "10485760", "Kafka",
             "Largest index; a segment whose index is full is full."),
    Property("log.segment.delete.delay.ms", _MS, "60000", "Kafka",
             "How long the files of what was deleted are kept."),
    Property("log.retention.hours", _RETENTION, "168", "Kafka",
             "Age past which segments are dropped, in hours; -1: none."),
    Property("log.retention.minutes", _RETENTION, None, "Kafka",
             "The same in minutes; once set, the hours do not count."),
    Property("log.retention.ms", integer(1, LONG_MAX, also=-1), None, "Kafka",
             "The same in milliseconds; once set, minutes and hours do not count."),
    Property("log.retention.bytes", size(0, also=-1), "-1", "Kafka",
             "Size of a partition past which its oldest segments are dropped; -1: none."),
    Property("log.retention.check.interval.ms", integer(1, LONG_MAX), "300000", "Kafka",
             "How often old segments are looked for."),
    # 4 MiB where Kafka has 1 GiB: retention drops whole segments, in memory a step that must be small beside the bound.
    # With log.dirs it is Kafka's (Config._check_segment_bytes).
    # At least 14 as up to Kafka 3.9 (4.0 asks for 1 MiB): a test of retention wants many segments of little data.
    Property("log.segment.bytes", size(14, INT_MAX), "4194304", "Kafka",
             "Largest segment: the step in which retention gives memory back. With log.dirs: by default 1073741824."),
    Property("log.roll.ms", integer(1, LONG_MAX), None, "Kafka",
             "A record this much younger than a segment's first batch goes into a new segment; unset: by the hours."),
    Property("log.roll.hours", _COUNT, "168", "Kafka",
             "The same in hours."),
    Property("log.roll.jitter.ms", _MS, None, "Kafka",
             "How much earlier a segment may end, by the log's name, so that not all do at once; unset: by the hours."),
    Property("log.roll.jitter.hours", integer(0), "0", "Kafka",
             "The same in hours."),
    Property("log.cleanup.policy", _CLEANUP, "delete", "KIP-71",
             "What becomes of old segments: deleted, compacted, both or (empty) neither."),
    Property("log.cleaner.enable", boolean(), "true", "Kafka",
             "Whether logs are compacted."),
    Property("log.cleaner.backoff.ms", _MS, "15000", "Kafka",
             "How often logs to be compacted are looked for."),
    Property("log.cleaner.min.cleanable.ratio", double(0, 1), "0.5", "Kafka",
             "Share of a log that has to be new for it to be compacted."),
    Property("log.cleaner.min.compaction.lag.ms", _MS, "0", "KIP-58",
             "Age from which records are compacted."),
    Property("log.cleaner.max.compaction.lag.ms", integer(1, LONG_MAX), _FOREVER, "KIP-354",
             "Age at which records are compacted however few they are."),
    Property("log.cleaner.delete.retention.ms", _MS, "86400000", "KIP-534",
             "How long a compacted log keeps tombstones, from the first time that it was compacted with them."),
    Property("log.cleaner.dedupe.buffer.size", integer(0, LONG_MAX), "134217728", "Kafka",
             "Memory for the keys of one compaction; a log with more is compacted in several rounds."),
    Property("log.cleaner.io.buffer.load.factor", double(0, LONG_MAX), "0.9", "Kafka",
             "How much of it may be used."),
    Property("compression.type", _COMPRESSION, "producer", "Kafka",
             "How the log is compressed; producer: as the batch came."),
    Property("compression.gzip.level", _GZIP_LEVEL, "-1", "KIP-390",
             "How well, where compression.type is gzip."),
    Property("compression.lz4.level", _LZ4_LEVEL, "9", "KIP-390",
             "Kept and shown: lz4 has one level here."),
    Property("compression.zstd.level", _ZSTD_LEVEL, "3", "KIP-390",
             "How well, where compression.type is zstd."),
    Property("log.message.timestamp.type", _TIMESTAMP_TYPE, "CreateTime", "KIP-32",
             "Whose clock stamps records."),
    Property("log.message.timestamp.before.max.ms", _MS, _FOREVER, "KIP-937",
             "How far a timestamp may be before the broker's clock."),
    Property("log.message.timestamp.after.max.ms", _MS, "3600000", "KIP-937",
             "How far a timestamp may be after the broker's clock."),
    Property("log.message.downconversion.enable", boolean(), "true", "KIP-283",
             "Whether consumers that know only older formats get records converted."),
    Property("producer.id.expiration.ms", _COUNT, "86400000", "KIP-854",
             "When a producer that fell silent is forgotten."),
    Property("sluice.log.memory.bytes", size(1), "1073741824", "sluice",
             "Memory of all partitions together; past it the oldest segments are dropped."),
    # 64 KiB: batches up to the size of a producer's default (16 KiB) and some more are seen whole; to look at every
    # record of a 1 MiB batch takes longer than all else the broker does with it.
    Property("sluice.record.validation.max.bytes", size(0, also=-1), "65536", "sluice",
             "Largest batch of which every record is looked at (else header and CRC); -1: every batch, as in Kafka."),
    # Groups.
    Property("group.initial.rebalance.delay.ms", integer(0, INT_MAX), "3000", "KIP-134",
             "How long the first rebalance of an empty group waits for more members."),
    Property("group.min.session.timeout.ms", integer(0, INT_MAX), "6000", "Kafka",
             "Shortest session timeout that a member may ask for."),
    Property("group.max.session.timeout.ms", integer(0, INT_MAX), "1800000", "Kafka",
             "Longest session timeout that a member may ask for."),
    Property("group.max.size", integer(1, INT_MAX), str(INT_MAX), "KIP-389",
             "Most members that a group may have."),
    Property("group.consumer.session.timeout.ms", _COUNT_INT, "45000", "KIP-848",
             "How long a member of a consumer group may be silent before it is out."),
    Property("group.consumer.min.session.timeout.ms", _COUNT_INT, "45000", "KIP-848",
             "Shortest session timeout that a consumer group may be given."),
    Property("group.consumer.max.session.timeout.ms", _COUNT_INT, "60000", "KIP-848",
             "Longest session timeout that a consumer group may be given."),
    Property("group.consumer.heartbeat.interval.ms", _COUNT_INT, "5000", "KIP-848",
             "How often members of consumer groups are told to send heartbeats."),
    Property("group.consumer.min.heartbeat.interval.ms", _COUNT_INT, "5000", "KIP-848",
             "Shortest heartbeat interval that a consumer group may be given."),
    Property("group.consumer.max.heartbeat.interval.ms", _COUNT_INT, "15000", "KIP-848",
             "Longest heartbeat interval that a consumer group may be given."),
    Property("group.consumer.assignment.interval.ms", integer(0, INT_MAX), "1000", "KIP-1263",
             "The least time from one target assignment of a consumer group to the next."),
    Property("group.consumer.min.assignment.interval.ms", integer(0, INT_MAX), "0", "KIP-1263",
             "Shortest assignment interval that a consumer group may be given."),
    Property("group.consumer.max.assignment.interval.ms", integer(0, INT_MAX), "15000", "KIP-1263",
             "Longest assignment interval that a consumer group may be given."),
    Property("group.consumer.max.size", _COUNT_INT, str(INT_MAX), "KIP-848",
             "Most members that a consumer group may have."),
    Property("group.consumer.assignors", some_names("uniform", "range"), "uniform,range", "KIP-848",
             "The assignors that members may ask for; the first is used where they ask for none."),
    Property("group.consumer.regex.refresh.interval.ms", integer(10_000, INT_MAX), "600000", "KIP-848",
             "When regular expressions that members subscribe to are looked at again, even if no topic was created."),
    Property("group.consumer.migration.policy", choice("bidirectional", "upgrade", "downgrade", "disabled"),
             "bidirectional", "KIP-848",
             "Which groups may change between the classic and the consumer protocol while they have members."),
    Property("offset.metadata.max.bytes", integer(0, INT_MAX), "4096", "Kafka",
             "Longest metadata that a client may commit with an offset."),
    Property("offsets.retention.minutes", integer(1, INT_MAX), "10080", "KIP-211",
             "How long the offsets of a group without members, or of a topic without subscribers, are kept."),
    Property("offsets.retention.check.interval.ms", integer(1, LONG_MAX), "600000", "Kafka",
             "How often offsets to be forgotten are looked for."),
    # The topics of the coordinators.
    Property("offsets.commit.timeout.ms", integer(1, INT_MAX), "5000", "Kafka",
             "How long an answer waits for the replicas of what its group has written."),
    Property("offsets.topic.num.partitions", _COUNT, "50", "Kafka",
             "Partitions of __consumer_offsets, which is created when a group is first asked for."),
    Property("offsets.topic.replication.factor", _COUNT, "3", "Kafka",
             "Replicas of __consumer_offsets; as many as there are brokers, where these are fewer."),
    Property("offsets.topic.segment.bytes", size(2**20, INT_MAX), "104857600", "Kafka",
             "Largest segment of __consumer_offsets."),
    Property("transaction.state.log.num.partitions", _COUNT, "50", "KIP-98",
             "Partitions of __transaction_state, which is created when a transactional producer first asks."),
    Property("transaction.state.log.replication.factor", _COUNT, "3", "KIP-98",
             "Replicas of __transaction_state; as many as there are brokers, where these are fewer."),
    Property("transaction.state.log.segment.bytes", size(2**20, INT_MAX), "104857600", "KIP-98",
             "Largest segment of __transaction_state."),
    # Transactions.
    Property("transaction.max.timeout.ms", _COUNT, "900000", "KIP-98",
             "Longest timeout that a transactional producer may ask for."),
    Property("transaction.abort.timed.out.transaction.cleanup.interval.ms", _COUNT, "10000", "KIP-98",
             "How often transactions open for longer than their timeout are looked for and aborted."),
    Property("transaction.partition.verification.enable", boolean(), "true", "KIP-890",
             "Whether a transactional write is taken only by partitions that were added to the transaction."),
    Property("add.partitions.to.txn.retry.backoff.ms", _COUNT, "20", "KIP-890",
             "How long a write waits before it is tried again whose producer's last transaction is being completed."),
    Property("add.partitions.to.txn.retry.backoff.max.ms", integer(0), "100", "KIP-890",
             "How long it is tried."),
    Property("transactional.id.expiration.ms", _COUNT, "604800000", "KIP-98",
             "When a transactional id that is not used is forgotten."),
    Property("transaction.remove.expired.transaction.cleanup.interval.ms", _COUNT, "3600000", "KIP-98",
             "How often such ids are looked for."),
    # The purgatory.
    Property("fetch.purgatory.purge.interval.requests", integer(), "1000", "Kafka",
             "Completed fetches that may linger among the watchers before a purge."),
    Property("producer.purgatory.purge.interval.requests", integer(), "1000", "Kafka",
             "The same of produce requests."),
    # Quotas.
    Property("quota.producer.default", rate(), None, "KIP-13",
             "Produce quota of every client id without one of its own."),
    Property("quota.consumer.default", rate(), None, "KIP-13",
             "Fetch quota of every client id without one of its own."),
    Property("quota.producer.override", rates(), "", "KIP-13",
             "Produce quotas of single client ids."),
    Property("quota.consumer.override", rates(), "", "KIP-13",
             "Fetch quotas of single client ids."),
    Property("quota.window.num", _COUNT, "11", "KIP-13",
             "Windows remembered: ten whole ones and the current one."),
    Property("quota.window.size.seconds", _COUNT, "1", "KIP-13",
             "Length of a window."),
    Property("controller.quota.window.num", _COUNT, "11", "KIP-599",
             "Windows for which the quota of controller mutations may be saved up."),
    Property("controller.quota.window.size.seconds", _COUNT, "1", "KIP-599",
             "Length of such a window."),
    Property("client.quota.callback.class", text(), None, "KIP-257",
             "A Python class, by its dotted path, that decides who is counted together and which limit holds."),
    Property("quota.profile", _PROFILE, "by-version", "sluice",
             "How throttling is done: by the request's version, as KIP-13 has it, or as a Kafka release did."),
    # What clients tell of themselves.
    Property("sluice.telemetry", boolean(), "false", "sluice",
             "Whether clients' metrics are taken (KIP-714); Kafka takes them only with a plugin."),
    Property("telemetry.max.bytes", integer(1), "1048576", "KIP-714",
             "Most that a client may push at once, compressed as it comes."),
    # The journal.
    # None by default: it makes a small request dearer by a seventh.
    Property("sluice.journal.events", integer(0, INT_MAX), "0", "sluice",
             "How many of the newest events the journal keeps in memory, 16384 say; 0: there is no journal."),
    Property("sluice.journal.topic", boolean(), "false", "sluice",
             "Whether the journal can be consumed as the topic __sluice_journal, too."),
    # The admin port and metrics.
    Property("sluice.admin.host", text(), "127.0.0.1", "sluice",
             "Address of the admin HTTP port; any but a loopback one needs sluice.admin.token."),
    Property("sluice.admin.token", password(), "", "sluice",
             "Bearer token that the admin HTTP port asks for; empty: none."),
    # 200: each is about ten time series, and 2,000 are no load for a scrape.
    Property("sluice.metrics.client.ids.max", integer(0), "200", "sluice",
             "Client ids, and fault rules, that have metrics of their own; the others share __other__."),
)
# fmt: on

PROPERTIES = {row.name: row for row in _ROWS}

# fmt: off
# A row of a table is read across, not down: config, kind, default, the broker's property that is its default, and what
# it does. A row without the last is kept and shown; nothing here uses it.
_TOPIC_ROWS: tuple[tuple[str, Kind, str | None, str | None, str], ...] = (
    ("cleanup.policy", _CLEANUP, "delete", "log.cleanup.policy",
     "What becomes of old segments: deleted, compacted, both or (empty) neither."),
    ("compression.type", _COMPRESSION, "producer", "compression.type",
     "How the log is compressed; producer: as the batch came."),
    ("max.message.bytes", integer(0), "1048588", "message.max.bytes", "Largest record batch, compressed as it comes."),
    ("message.downconversion.enable", boolean(), "true", "log.message.downconversion.enable",
     "Whether consumers that know only older formats get records converted."),
    ("message.timestamp.type", _TIMESTAMP_TYPE, "CreateTime", "log.message.timestamp.type",
     "Whose clock stamps records."),
    ("message.timestamp.before.max.ms", _MS, _FOREVER, "log.message.timestamp.before.max.ms",
     "How far a timestamp may be before the broker's clock."),
    ("message.timestamp.after.max.ms", _MS, "3600000", "log.message.timestamp.after.max.ms",
     "How far a timestamp may be after the broker's clock."),
    ("min.insync.replicas", integer(1), "1", "min.insync.replicas", "Replicas that must be in sync for acks=all."),
    ("retention.bytes", integer(-LONG_MAX - 1, LONG_MAX), "-1", "log.retention.bytes",
     "Size of a partition past which its oldest segments are dropped; negative: none."),
    ("retention.ms", integer(-1, LONG_MAX), _WEEK_MS, "log.retention.ms",
     "Age past which segments are dropped; -1: none."),
    # At least 1 MiB since Kafka 4.0; the internal config is Kafka's own way round that, for tests.
    ("segment.bytes", integer(2**20), "4194304", "log.segment.bytes", "Largest segment."),
    ("internal.segment.bytes", integer(1), None, None, "Largest segment, if set: in place of segment.bytes."),
    ("compression.gzip.level", _GZIP_LEVEL, "-1", "compression.gzip.level",
     "How well, where compression.type is gzip."),
    ("compression.lz4.level", _LZ4_LEVEL, "9", "compression.lz4.level", ""),  # the library has one level
    ("compression.zstd.level", _ZSTD_LEVEL, "3", "compression.zstd.level", "How well, where compression.type is zstd."),
    ("delete.retention.ms", _MS, "86400000", "log.cleaner.delete.retention.ms",
     "How long a compacted log keeps tombstones, from the first time that it was compacted with them."),
    ("errors.deadletterqueue.group.enable", boolean(), "false", None, ""),
    ("file.delete.delay.ms", _MS, "60000", "log.segment.delete.delay.ms",
     "How long the files of what was deleted are kept."),
    ("flush.messages", integer(1, LONG_MAX), _FOREVER, "log.flush.interval.messages",
     "Records after which the log is put on the disk before the producer is answered."),
    ("flush.ms", _MS, _FOREVER, "log.flush.interval.ms", "Time after which the log is put on the disk."),
    ("follower.replication.throttled.replicas", replicas(), "", None, ""),
    ("index.interval.bytes", integer(0), "4096", "log.index.interval.bytes",
     "Bytes of a segment for one entry of its indexes."),
    ("leader.replication.throttled.replicas", replicas(), "", None, ""),
    ("local.retention.bytes", integer(-2, LONG_MAX), "-2", None, ""),
    ("local.retention.ms", integer(-2, LONG_MAX), "-2", None, ""),
    ("max.compaction.lag.ms", integer(1, LONG_MAX), _FOREVER, "log.cleaner.max.compaction.lag.ms",
     "Age at which records are compacted however few they are."),
    ("max.decompressed.message.bytes", integer(1, INT_MAX - 8), str(INT_MAX - 8), None, ""),  # Java's longest array
    ("min.cleanable.dirty.ratio", double(0, 1), "0.5", "log.cleaner.min.cleanable.ratio",
     "Share of a log that has to be new for it to be compacted."),
    ("min.compaction.lag.ms", _MS, "0", "log.cleaner.min.compaction.lag.ms", "Age from which records are compacted."),
    ("preallocate", boolean(), "false", None, ""),
    ("remote.copy.lag.bytes", integer(-1, LONG_MAX), "-1", None, ""),
    ("remote.copy.lag.ms", integer(-1, LONG_MAX), "0", None, ""),
    ("remote.log.copy.disable", boolean(), "false", None, ""),
    ("remote.log.delete.on.disable", boolean(), "false", None, ""),
    ("remote.storage.enable", boolean(), "false", None, ""),
    ("segment.index.bytes", integer(4), "10485760", "log.index.size.max.bytes",
     "Largest index; a segment whose index is full is full."),
    ("segment.jitter.ms", _MS, "0", "log.roll.jitter.ms",
     "How much earlier a segment may end, by the log's name, so that not all do at once."),
    ("segment.ms", integer(1, LONG_MAX), _WEEK_MS, "log.roll.ms",
     "A record this much younger than a segment's first batch goes into a new segment."),
    ("unclean.leader.election.enable", boolean(), "false", "unclean.leader.election.enable",
     "Whether a replica that is not in sync may lead where none that is lives."),
)
# fmt: on

TOPIC_PROPERTIES = {
    name: Property(name, kind, default, "Kafka", doc or _NO_EFFECT) for name, kind, default, _, doc in _TOPIC_ROWS
}
TOPIC_DEFAULT_OF = {
    name: broker_property for name, _, _, broker_property, _ in _TOPIC_ROWS if broker_property is not None
}
