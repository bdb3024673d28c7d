"""Every action of a fault rule, and what is expected of the clients in Python that meet it, with the reason.

What is not said is expected of none: an error that the application sees, a client that does not recover, a record that
is lost or read twice.
"""

from collections.abc import Mapping

from tests.clients.fault_clients import NO_ANSWER
from tests.clients.fault_runs import Case, Rule
from tests.clients.fault_settings import Settings
from tests.support.certificates import certificates

AIOKAFKA, KAFKA_PYTHON, CONFLUENT = "aiokafka", "kafka-python", "confluent-kafka"

FILES = certificates()
TLS = {"listeners": "SSL://127.0.0.1:0", "ssl.keystore.location": str(FILES.broker)}
TLS_SETTINGS: Mapping[str, Settings] = {
    AIOKAFKA: {"security_protocol": "SSL", "ssl_context": FILES.client_context()},
    KAFKA_PYTHON: {"security_protocol": "SSL", "ssl_cafile": str(FILES.ca)},
    CONFLUENT: {"security.protocol": "SSL", "ssl.ca.location": str(FILES.ca)},
}
SASL = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "sluice.sasl.users": "alice:alice-secret",
}
_PYTHON_SASL = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "PLAIN",
    "sasl_plain_username": "alice",
    "sasl_plain_password": "alice-secret",
}
SASL_SETTINGS: Mapping[str, Settings] = {
    AIOKAFKA: _PYTHON_SASL,
    KAFKA_PYTHON: _PYTHON_SASL,
    CONFLUENT: {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
    },
}

RESET = "what a consumer that resets its offset has read: auto.offset.reset is earliest"
REJOINED = "what a consumer has read that joins its group again, since it commits nothing"
RETRIED = "The error is retriable: the client asks for metadata and sends again what was not taken"
RECONNECTS = "The request is sent again on a new connection; the broker knows by its sequence number what it has"


_OF_RULES = ("api", "broker", "client_id", "times")


def rule(kind: str, **fields: object) -> Rule:
    """A rule with an action that has these fields, but for those that a rule has itself."""
    own: dict[str, object] = {
        name: fields.pop(name) for name in ("api", "client_id", "times", "broker") if name in fields
    }
    return {"action": {"kind": kind, **fields}, **own}


CASES = (
    # -- errors --------------------------------------------------------------------------------------------------------
    Case(
        "answers three Produce with NOT_LEADER_OR_FOLLOWER",
        rule("error", code="NOT_LEADER_OR_FOLLOWER", api="Produce", times=3),
        RETRIED,
    ),
    Case(
        "takes what two Produce bring, and answers NOT_ENOUGH_REPLICAS_AFTER_APPEND",
        rule("error", code="NOT_ENOUGH_REPLICAS_AFTER_APPEND", when="after", api="Produce", times=2),
        "The error is retriable, and the broker knows by its sequence number what it has",
    ),
    Case(
        "answers one Produce with TOPIC_AUTHORIZATION_FAILED",
        rule("error", code="TOPIC_AUTHORIZATION_FAILED", api="Produce", times=1),
        "The error is not retriable, so the application is told. After it kafka-python takes its idempotent producer "
        "for lost, and aiokafka goes on with the sequence number after that of the record that was never written; "
        "librdkafka begins with a new epoch",
        errors={
            AIOKAFKA: frozenset({"send: TopicAuthorizationFailedError", "send: OutOfOrderSequenceNumber"}),
            KAFKA_PYTHON: frozenset({"send: TopicAuthorizationFailedError"}),
            CONFLUENT: frozenset({"send: TOPIC_AUTHORIZATION_FAILED"}),
        },
        replaced={AIOKAFKA: frozenset({"producer"}), KAFKA_PYTHON: frozenset({"producer"})},
    ),
    Case(
        "answers one Fetch with OFFSET_OUT_OF_RANGE",
        rule("error", code="OFFSET_OUT_OF_RANGE", api="Fetch", times=1),
        "The consumer does what auto.offset.reset says",
        reads_twice=RESET,
    ),
    Case(
        "answers one Heartbeat with NOT_COORDINATOR",
        rule("error", code="NOT_COORDINATOR", api="Heartbeat", times=1),
        "The member looks for its coordinator and goes on as it was",
        in_group=True,
    ),
    Case(
        "answers one Heartbeat with UNKNOWN_MEMBER_ID",
        rule("error", code="UNKNOWN_MEMBER_ID", api="Heartbeat", times=1),
        "The consumer joins as a new member, which gets its partitions when the session of the old one is over",
        in_group=True,
        reads_twice=REJOINED,
    ),
    # -- answers that are late, or never come --------------------------------------------------------------------------
    Case(
        "answers three Produce 300 ms late",
        rule("delay", ms=300, when="after", api="Produce", times=3),
        "A slow answer is an answer",
    ),
    Case(
        "takes one Produce and never answers",
        rule("black-hole", when="after", api="Produce", times=1),
        f"It times out. {RECONNECTS}",
    ),
    Case(
        "never answers one Fetch",
        rule("black-hole", api="Fetch", times=1),
        "The request times out, and is sent again on a new connection",
    ),
    Case(
        "takes one Produce and closes the connection",
        rule("close", when="after", api="Produce", times=1),
        RECONNECTS,
    ),
    Case(
        "resets one connection in the middle of the answer to a Fetch",
        rule("close", when="mid-response", how="rst", api="Fetch", times=1),
        "The request is sent again on a new connection",
    ),
    # -- answers that cannot be right ----------------------------------------------------------------------------------
    Case(
        "gives the answer to one Produce another correlation id",
        rule("correlation-id", api="Produce", times=1),
        "The answer belongs to no request: the client closes the connection, or waits for another answer until the "
        "request times out. Then it sends again, and the broker knows by its sequence number what it has",
    ),
    Case(
        "cuts the answer to one Produce short",
        rule("truncate", api="Produce", times=1),
        "aiokafka closes the connection and sends again. To the others an answer that cannot be read is an error that "
        "is not retriable, though the record is written; kafka-python takes its idempotent producer for lost",
        errors={
            KAFKA_PYTHON: frozenset({"send: KafkaProtocolError"}),
            CONFLUENT: frozenset({"send: _UNDERFLOW"}),
        },
        replaced={KAFKA_PYTHON: frozenset({"producer"})},
    ),
    Case(
        "answers one Produce with garbage",
        rule("garbage", api="Produce", times=1),
        "kafka-python waits for another answer until the request times out. To librdkafka it is an error that is not "
        "retriable. aiokafka finds an answer in it without the record, and never tells what became of that",
        patience_s=5.0,
        errors={AIOKAFKA: frozenset({f"send: {NO_ANSWER}"}), CONFLUENT: frozenset({"send: _UNDERFLOW"})},
    ),
    Case(
        "answers one Produce with a size that cannot be",
        rule("oversize", api="Produce", times=1),
        "aiokafka waits for the rest until the request times out, and sends again. To the others it is an error that "
        "is not retriable, though the record is written; kafka-python takes its idempotent producer for lost",
        errors={
            KAFKA_PYTHON: frozenset({"send: InvalidReceiveError"}),
            CONFLUENT: frozenset({"send: _BAD_MSG"}),
        },
        replaced={KAFKA_PYTHON: frozenset({"producer"})},
    ),
    Case(
        "breaks the checksums of records in the answers to five Fetch",
        rule("corrupt-records", api="Fetch", times=5),
        "The application is told, and aiokafka fetches them again. kafka-python does not: the next poll never returns. "
        "librdkafka looks at no CRC unless check.crcs is set",
        errors={
            AIOKAFKA: frozenset({"poll: CorruptRecordException"}),
            KAFKA_PYTHON: frozenset({"poll: CorruptRecordError"}),
        },
        ends_with={KAFKA_PYTHON: "poll: CorruptRecordError"},
        replaced={KAFKA_PYTHON: frozenset({"consumer"})},
    ),
    Case(
        "handles two Produce twice",
        rule("duplicate", what="request", api="Produce", times=2),
        "The broker knows by its sequence number that it has the record",
    ),
    Case(
        "answers two Produce twice",
        rule("duplicate", what="response", api="Produce", times=2),
        "The second answer belongs to no request: the client leaves it alone, or connects again",
    ),
    Case(
        "delivers the records of five Fetch twice",
        rule("duplicate", what="records", api="Fetch", times=5),
        "aiokafka leaves out records from before its position",
        reads_twice="what comes twice",
    ),
    Case(
        "tells two Produce to wait for 200 ms, and makes sure of it",
        rule("throttle", throttle_time_ms=200, mute=True, api="Produce", times=2),
        "The client waits, or is made to",
    ),
    # -- connections ---------------------------------------------------------------------------------------------------
    Case(
        "is killed and starts, and refuses connections for 0.7 s",
        rule("refuse-connections"),
        "The client tries to connect again and again",
        lasts_s=0.7,
        meanwhile="restarts",
    ),
    Case(
        "is killed and starts, and says nothing on new connections for 0.7 s",
        rule("silent-connections"),
        "The client waits for the answer to its first request",
        lasts_s=0.7,
        meanwhile="restarts",
    ),
    Case(
        "is killed and starts, and answers no TLS handshake for 0.7 s",
        rule("stall-tls"),
        "The client waits for the handshake",
        lasts_s=0.7,
        meanwhile="restarts",
        config=TLS,
        settings=TLS_SETTINGS,
    ),
    Case(
        "is killed and starts, and lets nobody log in for 0.7 s",
        rule("stall-sasl"),
        "The client waits for the answer to its SASL request",
        lasts_s=0.7,
        meanwhile="restarts",
        config=SASL,
        settings=SASL_SETTINGS,
    ),
    Case(
        "takes and gives 2,000 bytes a second on each connection, for a second",
        rule("bandwidth", in_bytes_per_s=2000, out_bytes_per_s=2000),
        "What is slow arrives",
        lasts_s=1.0,
    ),
    Case(
        "drops connections that are idle for 10 ms, without a word, for 0.3 s",
        rule("drop-idle", idle=10),
        "The next request on such a connection times out, and is sent again on a new one",
        lasts_s=0.3,
    ),
    # -- what is told of the cluster -----------------------------------------------------------------------------------
    Case(
        "does not know for 0.7 s that the leader has moved",
        rule("stale-metadata", broker=[2, 3]),
        "The leader that was says NOT_LEADER_OR_FOLLOWER, until metadata says who leads",
        lasts_s=0.7,
        brokers=3,
        meanwhile="moves",
    ),
    Case(
        "learns 300 ms late that the leader has moved",
        rule("metadata-lag", lag="300ms"),
        "The leader that was says NOT_LEADER_OR_FOLLOWER, until metadata says who leads",
        lasts_s=0.7,
        brokers=3,
        meanwhile="moves",
    ),
    # The producer: of librdkafka's consumers that had heard of no broker one in twelve was not back after 6 s.
    Case(
        "tells the producer twice of no broker and no topic",
        rule("empty-metadata", client_id="producer", times=2),
        "aiokafka and kafka-python go on with the brokers they know. librdkafka forgets them, and begins again with "
        "bootstrap.servers",
    ),
    Case(
        "is killed and starts, and says three times that the partition has no leader",
        rule("unknown-leader", times=3),
        "The client asks again until it has one",
        meanwhile="restarts",
    ),
    Case(
        "names another leader, twice",
        rule("wrong-leader", times=2),
        "The broker that is named says NOT_LEADER_OR_FOLLOWER, until metadata says who leads",
        brokers=3,
    ),
    Case(
        "names another leader with a new epoch to the producer, once",
        rule("wrong-leader", epoch="new", client_id="producer", times=1),
        "librdkafka believes no metadata whose leader epoch is older than the one it has, so that it never hears of "
        "the leader again",
        brokers=3,
        settings={CONFLUENT: {"message.timeout.ms": 3000}},
        errors={CONFLUENT: frozenset({"send: _MSG_TIMED_OUT"})},
        replaced={CONFLUENT: frozenset({"producer"})},
    ),
    Case(
        "moves the leader, and hints for 0.5 s at the one that was",
        rule("stale-leader-hint", epoch="current"),
        "Who follows the hint is sent back, until metadata says who leads",
        lasts_s=0.5,
        untouched={
            AIOKAFKA: "asks in versions without hints",
            KAFKA_PYTHON: "asks in versions without hints",
        },
        brokers=3,
        meanwhile="moves",
    ),
    Case(
        "moves the coordinator of the group, for 0.7 s",
        rule("coordinator-moved"),
        "The member looks for its coordinator, which knows the group from its log",
        lasts_s=0.7,
        brokers=3,
        in_group=True,
    ),
    Case(
        "loses the controller for 0.7 s, as the leader is killed",
        rule("controller-lost"),
        "Nobody is elected until the controller is back",
        lasts_s=0.7,
        brokers=3,
        meanwhile="is killed",
    ),
    Case(
        "takes 500 ms for an election, as the leader is killed",
        rule("slow-election", takes="500ms"),
        "Metadata has no leader until then",
        lasts_s=0.7,
        brokers=3,
        meanwhile="is killed",
    ),
    Case(
        "tells a consumer that resets its offset one that is not there",
        rule("offset-lie", offset=1_000_000, times=1),
        "The offset is out of range, and is reset again",
        also=rule("error", code="OFFSET_OUT_OF_RANGE", api="Fetch", times=1),
        reads_twice=RESET,
    ),
    # -- what is so ----------------------------------------------------------------------------------------------------
    Case(
        "moves the leader, and back after 0.5 s",
        rule("leader-moved"),
        RETRIED,
        lasts_s=0.5,
        brokers=3,
    ),
    Case(
        "that leads is killed, and back after 0.7 s",
        rule("broker-down", broker=1),
        "Another one leads after the election, and has all that was acknowledged",
        lasts_s=0.7,
        brokers=3,
    ),
    Case(
        "that leads is cut off from the others for 0.7 s",
        rule("isolate", broker=1),
        "What it takes is not acknowledged, since the others do not have it; another one leads after the election",
        lasts_s=0.7,
        brokers=3,
    ),
    Case(
        "takes 100 ms for each write and read, for 0.7 s",
        rule("slow-disk", latency="100ms"),
        "A slow answer is an answer",
        lasts_s=0.7,
    ),
    Case(
        "has a full disk for 0.5 s",
        rule("disk-full"),
        "KAFKA_STORAGE_ERROR is retriable: the client sends again until there is room",
        lasts_s=0.5,
    ),
    Case(
        "that has not the last two records is elected",
        rule("unclean-election", records=2),
        "The new leader has not the records, nor the sequence numbers that they had: OUT_OF_ORDER_SEQUENCE_NUMBER. "
        "kafka-python gives up one record and begins with a new epoch; to librdkafka the error is fatal, as records "
        "are lost; aiokafka gets it again and again. Consumers do what auto.offset.reset says",
        lasts_s=0.5,
        brokers=3,
        loses="the last two records",
        reads_twice=RESET,
        errors={
            AIOKAFKA: frozenset({"send: OutOfOrderSequenceNumber"}),
            KAFKA_PYTHON: frozenset({"send: OutOfOrderSequenceNumberError"}),
            CONFLUENT: frozenset({"send: OUT_OF_ORDER_SEQUENCE_NUMBER (fatal)", "send: _FATAL"}),
        },
        replaced={AIOKAFKA: frozenset({"producer"}), CONFLUENT: frozenset({"producer"})},
    ),
)
