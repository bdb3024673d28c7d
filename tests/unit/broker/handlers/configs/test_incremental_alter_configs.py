"""IncrementalAlterConfigs for each resource type: altered configs apply immediately; Kafka's errors."""

import logging
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import pytest

from sluice.broker.controller.configs.resource import Change
from sluice.broker.metadata.topic import Topic
from sluice.protocol.apis import incremental_alter_configs as api
from sluice.protocol.apis.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from sluice.protocol.errors import ErrorCode
from tests.support.records import batch, produce
from tests.support.virtual_broker import VirtualBroker, broker_with_topic
from tests.support.wire import error_codes

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
KINDS = {TOPIC: "topic", BROKER: "broker", BROKER_LOGGER: "logger", CLIENT_METRICS: "client metrics", GROUP: "group"}
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
# How Kafka writes what fails after the values have been parsed.
EXCEPTION = "Invalid value org.apache.kafka.common.config.ConfigException: "
DEFAULTS = {"min.insync.replicas": ("1", 3)}  # of all brokers, from the start
INVALID_REQUEST, INVALID_CONFIG = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_CONFIG
T = TypeVar("T")
Op = tuple[str, int, str | None]  # name, operation, value


def resource(kind: int, name: str, *ops: Op) -> api.AlterConfigsResource:
    configs = [api.AlterableConfig(name=key, config_operation=operation, value=value) for key, operation, value in ops]
    return api.AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def alter_all(
    broker: VirtualBroker, *resources: api.AlterConfigsResource, validate_only: bool = False
) -> list[tuple[int, str | None]]:
    """Return error code and message of each resource, in order."""
    request = api.IncrementalAlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    responses = broker.client().call(request, 1).responses
    assert [(response.resource_type, response.resource_name) for response in responses] == [
        (resource.resource_type, resource.resource_name) for resource in resources
    ]
    return [(response.error_code, response.error_message) for response in responses]


def alter(broker: VirtualBroker, kind: int, name: str, *ops: Op) -> None:
    """Alter one resource and assert that no error is returned."""
    assert alter_all(broker, resource(kind, name, *ops)) == [(0, None)]


def configs_of(broker: VirtualBroker, kind: int, name: str, *keys: str) -> dict[str, Any]:
    """Return value and source of each config."""
    described = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=list(keys))
    (result,) = broker.client().call(DescribeConfigsRequest(resources=[described]), 4).results
    return {config.name: (config.value, config.config_source) for config in result.configs}


@pytest.fixture(autouse=True)
def levels_of_broker_loggers() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in (None, "sluice", "sluice.broker")]
    before = [logger.level for logger in loggers]
    logging.getLogger("sluice").setLevel(logging.NOTSET)  # an earlier test may have set a level
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


# Accompanies each rejected operation of these types, and is not applied either.
VALID: dict[int, list[Op]] = {TOPIC: [("flush.ms", SET, "9")], BROKER_LOGGER: [("sluice.broker", SET, "FATAL")]}
# By resource and error: the rejected operations, and the message; those of broker configs continue with a list.
REJECTED: dict[tuple[int, str, ErrorCode], dict[str, tuple[list[Op], str | None]]] = {
    (TOPIC, "nowhere", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION): {
        "unknown name": ([("retention.ms", SET, "1")], "The topic 'nowhere' does not exist."),
    },
    (TOPIC, "", INVALID_REQUEST): {"empty name": ([], "Default topic resources are not allowed.")},
    (TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION): {
        "invalid name": (
            [],
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and"
            " '-'",
        ),
    },
    (TOPIC, "t", INVALID_CONFIG): {
        "unknown config": ([("no.such", SET, "1")], "Unknown topic config name: no.such"),
        "invalid value": (
            [("retention.ms", SET, "abc")],
            "Invalid value abc for configuration retention.ms: Not a number of type LONG",
        ),
        "append to a config that is not a list": (
            [("retention.ms", APPEND, "1")],
            "Can't APPEND to key retention.ms because its type is not LIST.",
        ),
        "subtract from an unknown config": (
            [("no.such", SUBTRACT, "1")],
            "Can't SUBTRACT to key no.such because its type is not LIST.",
        ),
    },
    (TOPIC, "t", INVALID_REQUEST): {
        "null values": (
            [("retention.ms", SET, None), ("retention.bytes", APPEND, None)],
            "Null value not supported for : retention.ms, retention.bytes",
        ),
        "duplicate config": (
            [("retention.ms", SET, "1"), ("retention.ms", DELETE, None)],
            "Error due to duplicate config keys",
        ),
    },
    (TOPIC, "t", ErrorCode.UNKNOWN_SERVER_ERROR): {"unknown operation": ([("retention.ms", 7, "1")], None)},
    (BROKER, "", INVALID_REQUEST): {
        "unknown operation": ([("log.retention.ms", 7, "1")], "Unknown operations type 7"),
        "configs that cannot be altered": (
            [("process.roles", SET, "x"), ("sluice.brokers", SET, "3"), ("no.such", SET, "3")],
            "Cannot update these configs dynamically: [process.roles, sluice.brokers]",
        ),
        "config of one broker for all": (
            [("sasl.kerberos.service.name", SET, "k"), ("listener.name.a.ssl.keystore.type", SET, "x")],
            "Cannot update these configs at default cluster level, broker id must be specified: "
            "[sasl.kerberos.service.nam",
        ),
        "less than half as many threads": (
            [("background.threads", SET, "4")],
            f"{EXCEPTION}Dynamic thread count update validation failed for background.threads=4, value should",
        ),
        "interval of a group above its maximum": (
            [("group.share.assignment.interval.ms", SET, "15001")],
            "Invalid value 15001 for configuration group.share.assignment.interval.ms: expected at most group.sha",
        ),
        "cleaner threads without enough memory": (
            [("log.cleaner.threads", SET, "2"), ("log.cleaner.dedupe.buffer.size", SET, str(2 * 2**20 + 1))],
            "requirement failed: log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread.",
        ),
        "no cleaner threads": ([("log.cleaner.threads", SET, "0")], "/ by zero"),
        "three times as many cleaner threads": (
            [("log.cleaner.threads", SET, "3")],
            f"{EXCEPTION}Dynamic thread count update valida",
        ),
        "local retention above the whole log's": (
            [("log.local.retention.bytes", SET, "8"), ("log.retention.bytes", SET, "7")],
            f"{EXCEPTION}Invalid value 8 for configuration log.local.retention.bytes: Value must not be more t",
        ),
        "unlimited local retention of a limited log": (
            [("log.local.retention.ms", SET, "-1")],
            f"{EXCEPTION}Invalid value -1 for configuration log.local.retention.ms: Value must not be -1 as lo",
        ),
        "remote copy after the local deletion": (
            [("log.remote.copy.lag.ms", SET, "9"), ("log.local.retention.ms", SET, "8")],
            f"{EXCEPTION}Invalid value 9 for configuration log.remote.copy.lag.ms: Value must not exceed log.l",
        ),
        "no connections of an address": (
            [("max.connections.per.ip", SET, "0")],
            "requirement failed: max.connections.per.ip can be set to zero only if max.connections.per.ip.over",
        ),
        "retention of no time": (
            [("log.retention.ms", SET, "0")],
            "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1",
        ),
        "segments below the limit of Kafka 4": (
            [("log.segment.bytes", SET, "1000")],
            "Invalid value 1000 for configuration log.segment.bytes: Value must be at least 1048576",
        ),
    },
    (BROKER, "1", INVALID_REQUEST): {
        "config that cannot be altered": (
            [("num.partitions", SET, "3")],
            "Cannot update these configs dynamically: [num.partitions]",
        ),
        "key store of no listener": (
            [("ssl.keystore.location", SET, "x")],
            "These security configs can be dynamically updated only per-listener using the listener prefix: "
            "[ssl.keystore.",
        ),
        "invalid value of a config without effect": (
            [("num.io.threads", SET, "x")],
            "Invalid value x for configuration num.io.threads: Not a number of type INT",
        ),
        "more than twice as many threads": (
            [("num.io.threads", SET, "17")],
            f"{EXCEPTION}Dynamic thread count update validation failed for num.io.threads=17, "
            "value should not be greater than double",
        ),
        "invalid value": (
            [("log.retention.ms", SET, "x")],
            "Invalid value x for configuration log.retention.ms: Not a number of type LONG",
        ),
        "listener without a port": (
            [("listeners", SET, "PLAINTEXT://a")],
            "Error creating broker listeners from '[PLAINTEXT://a]': Unable to parse PLAINTEXT://a to a broker",
        ),
        "no listeners": (
            [("listeners", SET, "")],
            "Configuration 'listeners' must not be empty. Valid values include: any non-empty value",
        ),
        "listener without a protocol": (
            [("listener.security.protocol.map", SET, "abc")],
            "Error parsing configuration property 'listener.security.protocol.map': begin 0, end -1, length 3",
        ),
        "cordoned directory that is none": (
            [("cordoned.log.dirs", SET, "/x")],
            "requirement failed: All entries in cordoned.log.dirs must be present in log.dirs or log.dir. Miss",
        ),
        "every directory and one more": (
            [("cordoned.log.dirs", SET, "*,/x")],
            "requirement failed: When cordoned.log.dirs is set to *, it must not contain other values",
        ),
    },
    (BROKER, "2", INVALID_REQUEST): {
        "other broker": ([("log.retention.ms", SET, "1")], "Unexpected broker id, expected 1, but received 2"),
    },
    (BROKER, "x", INVALID_REQUEST): {
        "id that is not a number": ([("log.retention.ms", SET, "1")], "Node id must be an integer, but it is: x"),
    },
    (BROKER, "", INVALID_CONFIG): {
        "removal of what ELR needs": (
            [("min.insync.replicas", DELETE, None)],
            "Cluster-level min.insync.replicas cannot be removed while ELR is enabled.",
        ),
    },
    (BROKER, "1", INVALID_CONFIG): {
        "in-sync replicas of one broker": (
            [("min.insync.replicas", SET, "2")],
            "Broker-level min.insync.replicas cannot be altered while ELR is enabled.",
        ),
        "append to a config that is not a list": (
            [("log.retention.ms", APPEND, "1")],
            "Config value append is not allowed for config key: log.retention.ms",
        ),
        "subtract from an unknown config": ([("no.such", SUBTRACT, "1")], "Unknown config name: no.such"),
    },
    (GROUP, "", INVALID_REQUEST): {
        "empty name": ([("consumer.session.timeout.ms", SET, "50000")], "Default group resources are not allowed."),
    },
    (GROUP, "g", INVALID_CONFIG): {
        "unknown config": ([("unknown.timeout.ms", SET, "1")], "Unknown group config name: unknown.timeout.ms"),
        "invalid value": (
            [("consumer.session.timeout.ms", SET, "a")],
            "Invalid value a for configuration consumer.session.timeout.ms: Not a number of type INT",
        ),
        "append to a config that is not a list": (
            [("consumer.session.timeout.ms", APPEND, "1")],
            "Can't APPEND to key consumer.session.timeout.ms because its type is not LIST.",
        ),
        "share, invalid duration": (
            [("share.auto.offset.reset", SET, "by_duration:1h")],
            "Invalid value by_duration:1h for configuration share.auto.offset.reset: "
            "Invalid value `by_duration:1h` for configuration share.auto.offset.reset. The value must be either "
            "'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
        ),
        "share, reserved dead-letter topic": (
            [("errors.deadletterqueue.topic.name", SET, "__x")],
            "errors.deadletterqueue.topic.name: DLQ topic name must not start with '__'",
        ),
        **{
            f"{key}={value}": ([(key, SET, value)], f"{key} {problem}")
            for key, value, problem in (
                ("consumer.session.timeout.ms", "44999", "must be in the range 45000 to 60000 inclusive."),
                ("consumer.heartbeat.interval.ms", "15001", "must be in the range 5000 to 15000 inclusive."),
                ("share.record.lock.duration.ms", "14999", "must be in the range 15000 to 60000 inclusive."),
                ("streams.session.timeout.ms", "60001", "must be in the range 45000 to 60000 inclusive."),
                ("streams.num.standby.replicas", "3", "must be less than or equal to 2"),
                ("streams.task.offset.interval.ms", "14999", "must be greater than or equal to 15000"),
                ("streams.rack.aware.assignment.tags", "a,b,a", "must not contain duplicate tag keys."),
                (
                    "streams.assignor.name",
                    "other",
                    "'other' is not a registered task assignor. Registered assignors are: [sticky].",
                ),
            )
        },
    },
    (CLIENT_METRICS, "", INVALID_REQUEST): {
        "empty name": ([("metrics", SET, "*")], "Subscription name can't be empty"),
    },
    (CLIENT_METRICS, "m", INVALID_REQUEST): {
        "unknown config": ([("x", SET, "1")], "Unknown client metrics configuration: x"),
        **{
            f"interval {problem}": (
                [("interval.ms", SET, value)],
                f"Invalid value {value} for interval.ms, interval must be between 100 and 3600000 (1 hour)",
            )
            for problem, value in (("too short", "99"), ("too long", "3600001"))
        },
    },
    (CLIENT_METRICS, "m", INVALID_CONFIG): {
        **{
            f"pattern with {problem}": ([("match", SET, pattern)], f"Illegal client matching pattern: {pattern}")
            for problem, pattern in (
                ("unknown selector", "colour=blue"),
                ("no expression", "client_id"),
                ("two expressions", "client_id=a=b"),
                ("invalid expression", "client_id=["),
                ("a huge repeat count", "client_id=(a{4294967296}"),
            )
        },
        "empty metric name": ([("metrics", SET, "a,")], "Configuration 'metrics' values must not be empty."),
        "append, unsupported by Kafka here": (
            [("metrics", APPEND, "a")],
            "Can't APPEND to key metrics because its type is not LIST.",
        ),
    },
    (BROKER_LOGGER, "2", INVALID_REQUEST): {
        "other broker": ([("root", SET, "INFO")], "Unexpected node id. Expected 1, but received 2"),
    },
    (BROKER_LOGGER, "", INVALID_REQUEST): {
        "empty broker id": ([("root", SET, "INFO")], "Node id must be an integer, but it is: "),
    },
    (BROKER_LOGGER, "1", INVALID_CONFIG): {
        "unknown logger": ([("no.such", SET, "INFO")], "Logger no.such does not exist!"),
        "unknown level": (
            [("root", SET, "debug")],
            "Cannot set the log level of root to debug as it is not a supported log level. "
            "Valid log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN",
        ),
    },
    (BROKER_LOGGER, "1", INVALID_REQUEST): {
        "root logger without level": (
            [("root", DELETE, None)],
            "Removing the log level of the root logger is not allowed",
        ),
        "append": ([("root", APPEND, "INFO")], "APPEND operation is not allowed for the BROKER_LOGGER resource"),
    },
}
REJECTIONS = [
    pytest.param(resource(kind, name, *VALID.get(kind, ()), *ops), code, message, id=f"{KINDS[kind]}: {title}")
    for (kind, name, code), rows in REJECTED.items()
    for title, (ops, message) in rows.items()
]


@pytest.mark.parametrize(("altered", "code", "message"), REJECTIONS)
def test_invalid_config_is_rejected_and_nothing_changes(
    altered: api.AlterConfigsResource, code: ErrorCode, message: str | None
) -> None:
    broker = broker_with_topic()
    ((actual, actual_message),) = alter_all(broker, altered)
    assert actual == code
    if altered.resource_type == BROKER and message is not None:
        assert actual_message is not None
        assert actual_message.startswith(message)
    else:
        assert actual_message == message
    assert broker.broker.cluster.topics["t"].config.own == {}
    assert list(broker.broker.configs.groups.names()) == []
    assert list(broker.broker.configs.client_metrics.names()) == []
    assert logging.getLogger("sluice.broker").level != logging.CRITICAL


def test_sessions_of_a_group_must_exceed_its_heartbeat_interval() -> None:
    broker = VirtualBroker("group.streams.min.session.timeout.ms=1")
    altered = resource(GROUP, "g", ("streams.session.timeout.ms", SET, "5000"))
    message = "streams.session.timeout.ms must be greater than streams.heartbeat.interval.ms"
    assert alter_all(broker, altered) == [(INVALID_CONFIG, message)]


LIST_CHANGES = {
    "append to the default": (None, APPEND, "compact", ("delete,compact", 1)),
    "append to a set value": ("compact", APPEND, "delete", ("compact,delete", 1)),
    "append existing items": ("compact", APPEND, "compact,delete", ("compact,delete", 1)),
    "subtract": ("compact,delete", SUBTRACT, "delete", ("compact", 1)),
    "subtract the default": (None, SUBTRACT, "delete", ("", 1)),
    "subtract a missing item": ("compact", SUBTRACT, "delete", ("compact", 1)),
    "set": ("compact", SET, "delete", ("delete", 1)),
    "remove": ("compact", DELETE, None, ("delete", 5)),
    "remove with a value": ("compact", DELETE, "x", ("delete", 5)),
}


class TestTopics:
    def test_altered_configs_apply_to_open_logs(self) -> None:
        broker = broker_with_topic()
        client = broker.client()
        assert error_codes(client.call(produce(9, batch(bytes(2000))), 9)) == []
        alter(broker, TOPIC, "t", ("max.message.bytes", SET, "1000"), ("retention.ms", SET, "77"))
        assert error_codes(client.call(produce(9, batch(bytes(2000))), 9)) == [ErrorCode.MESSAGE_TOO_LARGE]
        assert broker.partition().log.config.retention_ms == 77
        alter(broker, TOPIC, "t", ("max.message.bytes", DELETE, None))
        assert error_codes(client.call(produce(9, batch(bytes(2000))), 9)) == []

    def test_altered_min_insync_replicas_applies_immediately(self) -> None:
        broker = broker_with_topic()
        broker.partition().replicas = (1, 2)  # one of them is in sync
        alter(broker, TOPIC, "t", ("min.insync.replicas", SET, "2"))
        assert error_codes(broker.client().call(produce(9, acks=-1), 9)) == [ErrorCode.NOT_ENOUGH_REPLICAS]

    @pytest.mark.parametrize(("before", "operation", "value", "after"), LIST_CHANGES.values(), ids=LIST_CHANGES)
    def test_list_configs_are_altered_item_by_item(
        self, before: str | None, operation: int, value: str | None, after: tuple[str, int]
    ) -> None:
        configs: dict[str, Any] = {"cleanup_policy": before} if before else {}
        broker = broker_with_topic(**configs)
        alter(broker, TOPIC, "t", ("cleanup.policy", operation, value))
        assert configs_of(broker, TOPIC, "t", "cleanup.policy") == {"cleanup.policy": after}

    def test_other_configs_of_the_topic_do_not_change(self) -> None:
        broker = broker_with_topic(retention_ms="5")
        alter(broker, TOPIC, "t", ("retention.bytes", SET, "6"))
        configs = configs_of(broker, TOPIC, "t", "retention.ms", "retention.bytes")
        assert configs == {"retention.ms": ("5", 1), "retention.bytes": ("6", 1)}

    def test_value_above_kafkas_maximum_size_is_rejected(self) -> None:
        broker = broker_with_topic()
        key = "leader.replication.throttled.replicas"
        alter(broker, TOPIC, "t", (key, SET, ",".join(f"{n}:1" for n in range(3000))))
        longer = resource(TOPIC, "t", (key, APPEND, ",".join(f"{n}:1" for n in range(3000, 6000))))
        message = "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."
        assert alter_all(broker, longer) == [(INVALID_CONFIG, message)]

    def test_unknown_config_may_be_deleted(self) -> None:
        alter(broker_with_topic(), TOPIC, "t", ("no.such", DELETE, None))

    def test_validate_only_changes_nothing(self) -> None:
        broker = broker_with_topic()
        good, bad = resource(TOPIC, "t", ("flush.ms", SET, "9")), resource(TOPIC, "u", ("flush.ms", SET, "9"))
        codes = [code for code, _ in alter_all(broker, good, bad, validate_only=True)]
        assert codes == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
        assert broker.broker.cluster.topics["t"].config.own == {}


class TestBrokers:
    def test_cluster_and_broker_configs_apply_to_topics(self) -> None:
        broker = broker_with_topic()
        log = broker.partition().log
        alter(broker, BROKER, "", ("log.retention.ms", SET, "8888"), ("message.max.bytes", SET, "2000"))
        assert (log.config.retention_ms, log.config.append.max_message_bytes) == (8888, 2000)
        alter(broker, BROKER, "1", ("log.retention.ms", SET, "7777"))
        assert log.config.retention_ms == 7777
        assert configs_of(broker, TOPIC, "t", "retention.ms") == {"retention.ms": ("7777", 2)}
        assert configs_of(broker, BROKER, "1", "message.max.bytes") == {"message.max.bytes": ("2000", 3)}
        assert configs_of(broker, BROKER, "") == DEFAULTS | {
            "log.retention.ms": ("8888", 3),
            "message.max.bytes": ("2000", 3),
        }
        alter(broker, BROKER, "1", ("log.retention.ms", DELETE, None))
        alter(broker, BROKER, "", ("message.max.bytes", DELETE, None))
        assert (log.config.retention_ms, log.config.append.max_message_bytes) == (8888, 1_048_588)

    def test_topic_config_precedes_broker_config(self) -> None:
        broker = broker_with_topic(retention_ms="5")
        alter(broker, BROKER, "1", ("log.retention.ms", SET, "7777"))
        assert broker.partition().log.config.retention_ms == 5

    def test_topics_created_later_get_the_altered_broker_configs(self, broker: VirtualBroker) -> None:
        alter(broker, BROKER, "1", ("log.cleanup.policy", APPEND, "compact"))
        alter(broker, BROKER, "", ("min.insync.replicas", SET, "2"))
        topic = broker.topic()
        assert (topic.config.names("cleanup.policy"), topic.min_insync_replicas) == (("delete", "compact"), 2)

    def test_producer_id_expiration_is_altered(self) -> None:
        broker = broker_with_topic()
        alter(broker, BROKER, "1", ("producer.id.expiration.ms", SET, "5"))
        assert broker.partition().log.config.producer_id_expiration_ms == 5

    def test_configs_without_effect_and_unknown_ones_are_kept_and_described(self, broker: VirtualBroker) -> None:
        values = {
            "num.io.threads": "9",
            "background.threads": "11",
            "log.cleaner.threads": "2",
            "leader.replication.throttled.rate": "1000",
            "group.consumer.assignment.interval.ms": "5",
        }
        of_one_broker = {"sasl.kerberos.service.name": "k", "listener.name.plaintext.ssl.keystore.location": "/x"}
        hidden = {"my.unknown": "5", "zookeeper.connect": "z"}  # values of unknown type could be secrets
        for name, those in (("", values), ("1", values | of_one_broker)):
            changes = [(key, SET, value) for key, value in (those | hidden).items()]
            alter(broker, BROKER, name, *changes)
            described = configs_of(broker, BROKER, name, *those, *hidden)
            source = 2 if name else 3
            assert described == {key: (those.get(key), source) for key in those | hidden}
            alter(broker, BROKER, name, *((key, DELETE, None) for key in those | hidden))
        assert configs_of(broker, BROKER, "") == DEFAULTS
        assert configs_of(broker, BROKER, "1", *values)["num.io.threads"] == ("8", 5)


class TestGroups:
    def test_configs_are_stored_per_group(self, broker: VirtualBroker) -> None:
        alter(broker, GROUP, "g", ("consumer.session.timeout.ms", SET, "50000"))
        key = "consumer.session.timeout.ms"
        assert [configs_of(broker, GROUP, name, key)[key] for name in ("g", "h")] == [("50000", 8), ("45000", 5)]
        groups = broker.broker.configs.groups
        assert [groups.in_force(name).integer(key) for name in ("g", "h")] == [50_000, 45_000]


class TestClientMetrics:
    def test_subscription_exists_while_one_of_its_configs_is_set(self, broker: VirtualBroker) -> None:
        alter(broker, CLIENT_METRICS, "m", ("metrics", SET, "a.,b."), ("match", SET, "client_id=x.*"))
        assert configs_of(broker, CLIENT_METRICS, "m", "metrics", "interval.ms") == {
            "metrics": ("a.,b.", 7),
            "interval.ms": ("300000", 5),
        }
        assert list(broker.broker.configs.client_metrics.names()) == ["m"]
        alter(broker, CLIENT_METRICS, "m", ("metrics", DELETE, None), ("match", DELETE, None))
        assert list(broker.broker.configs.client_metrics.names()) == []


class TestLoggers:
    def test_logger_level_is_set_and_removed(self, broker: VirtualBroker) -> None:
        alter(broker, BROKER_LOGGER, "1", ("root", SET, "ERROR"), ("sluice.broker", SET, "TRACE"))
        assert configs_of(broker, BROKER_LOGGER, "1", "sluice.broker") == {"sluice.broker": ("TRACE", 6)}
        alter(broker, BROKER_LOGGER, "1", ("sluice.broker", DELETE, None))
        assert configs_of(broker, BROKER_LOGGER, "1", "sluice.broker") == {"sluice.broker": ("ERROR", 6)}

    def test_validate_only_changes_no_levels(self) -> None:
        before = logging.getLogger("sluice.broker").level
        altered = resource(BROKER_LOGGER, "1", ("sluice.broker", SET, "TRACE"))
        assert alter_all(VirtualBroker(), altered, validate_only=True) == [(0, None)]
        assert logging.getLogger("sluice.broker").level == before


def test_duplicate_resource_is_rejected_and_unchanged() -> None:
    broker = broker_with_topic()
    twice = (resource(TOPIC, "t", ("flush.ms", SET, "1")), resource(TOPIC, "t", ("flush.messages", SET, "1")))
    rejected = (INVALID_REQUEST, "Each resource must appear at most once.")
    assert alter_all(broker, *twice) == [rejected, rejected]
    assert broker.broker.cluster.topics["t"].config.own == {}


def test_unknown_resource_type_is_rejected() -> None:
    rejected = (INVALID_REQUEST, "Unknown resource type 99")
    assert alter_all(VirtualBroker(), resource(99, "x", ("a", SET, "b"))) == [rejected]


def test_alteration_between_two_slices_of_another_is_kept(topic: Topic, broker: VirtualBroker) -> None:
    configs = broker.broker.configs
    loops: list[None] = []  # the first checks the operations, the second applies them

    def sliced(elements: Iterable[T]) -> Iterator[T]:
        loops.append(None)
        for number, element in enumerate(elements):
            if len(loops) == 2 and number:
                assert not alter_all(broker, resource(TOPIC, "t", ("retention.ms", SET, "1")))[0][0]
            yield element

    changes = {"flush.ms": Change(SET, "2"), "segment.ms": Change(SET, "3")}
    assert configs.alter(TOPIC, "t", changes, validate_only=False, sliced=sliced) is None
    assert broker.cluster.topics["t"].config.own == {"flush.ms": "2", "segment.ms": "3", "retention.ms": "1"}
    assert len(loops) == 3
