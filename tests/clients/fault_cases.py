"""Every action of a fault rule, with the expected outcome for each Python client, and the reason.

Errors, clients that do not recover, and records that are lost or read twice are expected only where a case lists them.
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

RESET = "records that a consumer has read before it resets its offset, as auto.offset.reset is earliest"
REJOINED = "records that a consumer has read before it rejoins its group, as it commits no offsets"
RETRIED = "The error is retriable: the client refreshes its metadata and sends the batch again"
RECONNECTS = "The batch is sent again on a new connection; the broker recognizes it by its sequence number"
REDIRECTED = "The previous leader returns NOT_LEADER_OR_FOLLOWER until metadata is current"

_OF_RULES = ("api", "broker", "client_id", "times")


def rule(kind: str, **fields: object) -> Rule:
    """Return a rule; fields that are not a rule's own are those of its action."""
    own: dict[str, object] = {name: fields.pop(name) for name in _OF_RULES if name in fields}
    return {"action": {"kind": kind, **fields}, **own}


# Tested with share consumers, in tests/unit/broker/faults: most of these clients have none.
ON_SHARE_GROUPS = {"acquisition-lock-lost", "redelivery", "acknowledgement-error"}
CASES = {
    # -- errors --------------------------------------------------------------------------------------------------------
    "returns NOT_LEADER_OR_FOLLOWER for three Produce requests": Case(
        rule("error", code="NOT_LEADER_OR_FOLLOWER", api="Produce", times=3), RETRIED
    ),
    "appends the records of two Produce requests, and returns NOT_ENOUGH_REPLICAS_AFTER_APPEND": Case(
        rule("error", code="NOT_ENOUGH_REPLICAS_AFTER_APPEND", when="after", api="Produce", times=2),
        "The error is retriable, and the broker recognizes the batch by its sequence number",
    ),
    "returns TOPIC_AUTHORIZATION_FAILED for one Produce request": Case(
        rule("error", code="TOPIC_AUTHORIZATION_FAILED", api="Produce", times=1),
        "The error is not retriable, so the application receives it. Then the idempotent producer of "
        "kafka-python fails permanently, aiokafka continues with a gap in its sequence numbers, and "
        "librdkafka continues with a new epoch",
        errors={
            AIOKAFKA: frozenset({"send: TopicAuthorizationFailedError", "send: OutOfOrderSequenceNumber"}),
            KAFKA_PYTHON: frozenset({"send: TopicAuthorizationFailedError"}),
            CONFLUENT: frozenset({"send: TOPIC_AUTHORIZATION_FAILED"}),
        },
        replaced={AIOKAFKA: frozenset({"producer"}), KAFKA_PYTHON: frozenset({"producer"})},
    ),
    "returns OFFSET_OUT_OF_RANGE for one Fetch request": Case(
        rule("error", code="OFFSET_OUT_OF_RANGE", api="Fetch", times=1),
        "The consumer resets its offset by auto.offset.reset",
        reads_twice=RESET,
    ),
    "returns NOT_COORDINATOR for one heartbeat": Case(
        rule("error", code="NOT_COORDINATOR", api="Heartbeat", times=1),
        "The member finds its coordinator and continues",
        in_group=True,
    ),
    "returns UNKNOWN_MEMBER_ID for one heartbeat": Case(
        rule("error", code="UNKNOWN_MEMBER_ID", api="Heartbeat", times=1),
        "The consumer joins as a new member, and receives its partitions when the session of the old member "
        "has expired",
        in_group=True,
        reads_twice=REJOINED,
    ),
    # -- delayed and missing responses ---------------------------------------------------------------------------------
    "delays the responses of three Produce requests by 300 ms": Case(
        rule("delay", ms=300, when="after", api="Produce", times=3), "The delay is shorter than the request timeout"
    ),
    "holds the responses of Produce requests for 0.5 s": Case(
        rule("hold", when="after", api="Produce"), "The responses arrive before the request timeout", lasts_s=0.5
    ),
    "handles one Produce request, and never responds": Case(
        rule("black-hole", when="after", api="Produce", times=1), f"The request times out. {RECONNECTS}"
    ),
    "never responds to one Fetch request": Case(
        rule("black-hole", api="Fetch", times=1), "The request times out, and is sent again on a new connection"
    ),
    "handles one Produce request, and closes the connection": Case(
        rule("close", when="after", api="Produce", times=1), RECONNECTS
    ),
    "resets one connection in the middle of a Fetch response": Case(
        rule("close", when="mid-response", how="rst", api="Fetch", times=1),
        "The request is sent again on a new connection",
    ),
    # -- malformed responses ------------------------------------------------------------------------------------------
    "responds to one Produce request with another correlation id": Case(
        rule("correlation-id", api="Produce", times=1),
        "The response matches no request: the client closes the connection, or waits until the request "
        "times out. Then it sends the batch again, and the broker recognizes it by its sequence number",
    ),
    "truncates one Produce response": Case(
        rule("truncate", api="Produce", times=1),
        "aiokafka closes the connection and sends the batch again. For the others, a malformed response is "
        "an error that is not retriable, although the record is in the log; the idempotent producer of "
        "kafka-python then fails permanently",
        errors={KAFKA_PYTHON: frozenset({"send: KafkaProtocolError"}), CONFLUENT: frozenset({"send: _UNDERFLOW"})},
        replaced={KAFKA_PYTHON: frozenset({"producer"})},
    ),
    "responds to one Produce request with random bytes": Case(
        rule("garbage", api="Produce", times=1),
        "kafka-python waits until the request times out. librdkafka reports an error that is not retriable. "
        "aiokafka parses a response without the partition, and never reports the outcome of the record",
        patience_s=5.0,
        errors={AIOKAFKA: frozenset({f"send: {NO_ANSWER}"}), CONFLUENT: frozenset({"send: _UNDERFLOW"})},
    ),
    "responds to one Produce request with an impossible size": Case(
        rule("oversize", api="Produce", times=1),
        "aiokafka waits until the request times out, and sends the batch again. For the others, it is an "
        "error that is not retriable, although the record is in the log; the idempotent producer of "
        "kafka-python then fails permanently",
        errors={KAFKA_PYTHON: frozenset({"send: InvalidReceiveError"}), CONFLUENT: frozenset({"send: _BAD_MSG"})},
        replaced={KAFKA_PYTHON: frozenset({"producer"})},
    ),
    "corrupts the CRCs in five Fetch responses": Case(
        rule("corrupt-records", api="Fetch", times=5),
        "The application receives the error. aiokafka fetches the records again. The next poll of "
        "kafka-python never returns. librdkafka checks CRCs only with check.crcs",
        errors={
            AIOKAFKA: frozenset({"poll: CorruptRecordException"}),
            KAFKA_PYTHON: frozenset({"poll: CorruptRecordError"}),
        },
        ends_with={KAFKA_PYTHON: "poll: CorruptRecordError"},
        replaced={KAFKA_PYTHON: frozenset({"consumer"})},
    ),
    "handles two Produce requests twice": Case(
        rule("duplicate", what="request", api="Produce", times=2),
        "The broker recognizes the batch by its sequence number",
    ),
    "sends two Produce responses twice": Case(
        rule("duplicate", what="response", api="Produce", times=2),
        "The second response matches no request: the client ignores it or reconnects",
    ),
    "returns the records of five Fetch requests twice": Case(
        rule("duplicate", what="records", api="Fetch", times=5),
        "aiokafka skips records before its position",
        reads_twice="the duplicated records",
    ),
    "throttles two Produce requests for 200 ms": Case(
        rule("throttle", throttle_time_ms=200, mute=True, api="Produce", times=2),
        "The client waits, or the broker mutes its connection",
    ),
    # -- connections ---------------------------------------------------------------------------------------------------
    "restarts after a crash, and refuses connections for 0.7 s": Case(
        rule("refuse-connections"), "The client retries to connect", lasts_s=0.7, meanwhile="restarts"
    ),
    "restarts after a crash, and sends nothing on new connections for 0.7 s": Case(
        rule("silent-connections"),
        "The client waits for the response to its first request",
        lasts_s=0.7,
        meanwhile="restarts",
    ),
    "restarts after a crash, and answers no TLS handshake for 0.7 s": Case(
        rule("stall-tls"),
        "The client waits for the handshake",
        lasts_s=0.7,
        meanwhile="restarts",
        config=TLS,
        settings=TLS_SETTINGS,
    ),
    "restarts after a crash, and answers no authentication for 0.7 s": Case(
        rule("stall-sasl"),
        "The client waits for the response to its SASL request",
        lasts_s=0.7,
        meanwhile="restarts",
        config=SASL,
        settings=SASL_SETTINGS,
    ),
    "limits each connection to 2,000 bytes/s for 1 s": Case(
        rule("bandwidth", in_bytes_per_s=2000, out_bytes_per_s=2000), "The client only becomes slower", lasts_s=1.0
    ),
    "drops connections that are idle for 10 ms, for 0.3 s": Case(
        rule("drop-idle", idle=10),
        "The next request on such a connection times out, and is sent again on a new one",
        lasts_s=0.3,
    ),
    # -- wrong metadata ------------------------------------------------------------------------------------------------
    "returns old metadata for 0.7 s after the leader moved": Case(
        rule("stale-metadata", broker=[2, 3]), REDIRECTED, lasts_s=0.7, brokers=3, meanwhile="moves"
    ),
    "returns metadata that is 300 ms old after the leader moved": Case(
        rule("metadata-lag", lag="300ms"), REDIRECTED, lasts_s=0.7, brokers=3, meanwhile="moves"
    ),
    # Only for the producer: one in twelve consumers of librdkafka did not recover within 6 s.
    "returns Metadata without brokers and topics to the producer twice": Case(
        rule("empty-metadata", client_id="producer", times=2),
        "aiokafka and kafka-python continue with the brokers that they know. librdkafka forgets them, and "
        "restarts from bootstrap.servers",
    ),
    "restarts after a crash, and reports the partition without a leader three times": Case(
        rule("unknown-leader", times=3),
        "The client refreshes its metadata until there is a leader",
        meanwhile="restarts",
    ),
    "names a wrong leader twice": Case(
        rule("wrong-leader", times=2),
        "The named broker returns NOT_LEADER_OR_FOLLOWER until metadata is correct",
        brokers=3,
    ),
    "names a wrong leader with a new epoch to the producer once": Case(
        rule("wrong-leader", epoch="new", client_id="producer", times=1),
        "librdkafka ignores metadata with an older leader epoch than it knows, so it never finds the leader again",
        brokers=3,
        settings={CONFLUENT: {"message.timeout.ms": 3000}},
        errors={CONFLUENT: frozenset({"send: _MSG_TIMED_OUT"})},
        replaced={CONFLUENT: frozenset({"producer"})},
    ),
    "moves the leader, and hints at the previous one for 0.5 s": Case(
        rule("stale-leader-hint", epoch="current"),
        "A client that follows the hint is redirected until metadata is current",
        lasts_s=0.5,
        untouched={AIOKAFKA: "uses versions without hints", KAFKA_PYTHON: "uses versions without hints"},
        brokers=3,
        meanwhile="moves",
    ),
    "moves the coordinator of the group for 0.7 s": Case(
        rule("coordinator-moved"),
        "The member finds the new coordinator, which loads the group from its log",
        lasts_s=0.7,
        brokers=3,
        in_group=True,
    ),
    "loses the controller for 0.7 s while the leader is killed": Case(
        rule("controller-lost"),
        "No leader is elected until the controller is back",
        lasts_s=0.7,
        brokers=3,
        meanwhile="is killed",
    ),
    "takes 500 ms for an election when the leader is killed": Case(
        rule("slow-election", takes="500ms"),
        "Metadata has no leader until then",
        lasts_s=0.7,
        brokers=3,
        meanwhile="is killed",
    ),
    "returns an offset beyond the end to a consumer that resets its offset": Case(
        rule("offset-lie", offset=1_000_000, times=1),
        "The offset is out of range, and is reset again",
        also=rule("error", code="OFFSET_OUT_OF_RANGE", api="Fetch", times=1),
        reads_twice=RESET,
    ),
    # -- brokers -------------------------------------------------------------------------------------------------------
    "moves the leader, and back after 0.5 s": Case(rule("leader-moved"), RETRIED, lasts_s=0.5, brokers=3),
    "is the leader, is killed, and restarts after 0.7 s": Case(
        rule("broker-down", broker=1),
        "Another broker with all acknowledged records leads after the election",
        lasts_s=0.7,
        brokers=3,
    ),
    "is the leader, is shut down, and restarts after 0.7 s": Case(
        rule("broker-down", broker=1, controlled=True),
        "Another broker leads before it stops, so there is no election to wait for",
        lasts_s=0.7,
        brokers=3,
    ),
    "is the leader, and is isolated from the others for 0.7 s": Case(
        rule("isolate", broker=1),
        "New records are not acknowledged, since the followers do not have them; another broker leads after "
        "the election",
        lasts_s=0.7,
        brokers=3,
    ),
    "takes 100 ms for each write and read for 0.7 s": Case(
        rule("slow-disk", latency="100ms"), "The delay is shorter than the request timeout", lasts_s=0.7
    ),
    "has a full disk for 0.5 s": Case(
        rule("disk-full"), "KAFKA_STORAGE_ERROR is retriable: the client retries until there is space", lasts_s=0.5
    ),
    "is elected without the last two records": Case(
        rule("unclean-election", records=2),
        "The new leader lacks the records and their sequence numbers: OUT_OF_ORDER_SEQUENCE_NUMBER. "
        "kafka-python fails one record and continues with a new epoch; for librdkafka the error is fatal, "
        "as records are lost; aiokafka receives it repeatedly. Consumers reset their offset by "
        "auto.offset.reset",
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
}
