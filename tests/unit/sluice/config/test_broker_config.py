"""Broker configuration: sources and their precedence, warnings, errors, and topic configs."""

from pathlib import Path

import pytest

from sluice.config.broker_config import Config, TopicConfig, refused_topic_configs
from sluice.config.ignored_properties import NAMES, PREFIXES
from sluice.config.kafka_releases import RELEASES
from sluice.config.property_table import PROPERTIES, TOPIC_DEFAULT_OF, TOPIC_PROPERTIES
from sluice.config.setting import (
    DEFAULT_CONFIG,
    DYNAMIC_BROKER_CONFIG,
    DYNAMIC_DEFAULT_BROKER_CONFIG,
    DYNAMIC_TOPIC_CONFIG,
    STATIC_BROKER_CONFIG,
    Synonym,
)
from sluice.config.value_types import text_of
from sluice.errors import ConfigError

# A single-node KRaft configuration, in the order and spelling of Kafka's files.
KAFKAS_OWN = """
# The role of this server
process.roles=broker,controller
node.id=7
controller.quorum.voters=7@localhost:9093
listeners=PLAINTEXT://:9092,CONTROLLER://:9093
advertised.listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_SSL:SASL_SSL
listener.name.plaintext.num.network.threads=50
num.network.threads=3
log.dirs=/tmp/kraft-combined-logs
log.retention.hours=24
log.segment.bytes=1073741824
"""


def _file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "server.properties"
    path.write_text(text, encoding="utf-8")
    return path


def _addresses(config: Config) -> list[tuple[str, str, int]]:
    return [(endpoint.name, endpoint.host, endpoint.port) for endpoint in config.listeners()]


def test_later_source_wins_and_is_named(tmp_path: Path) -> None:
    file = _file(tmp_path, "num.partitions=2\nquota.window.num=21\nmessage.max.bytes=5\nmessage.max.bytes=6\n")
    environ = {"KAFKA_NUM_PARTITIONS": "3", "KAFKA_QUOTA_PRODUCER_DEFAULT": "2M"}
    config = Config.load(file, ["num.partitions=4", "num.partitions=5"], environ)
    assert config.integer("num.partitions") == 5
    assert config.integer("quota.window.num") == 21
    assert config.integer("message.max.bytes") == 6, "the last line of a file wins, as in Java"
    assert config.rate("quota.producer.default") == 2e6
    assert config.boolean("delete.topic.enable")
    origins = {setting.property.name: (setting.source, setting.origin) for setting in config.entries()}
    assert origins["num.partitions"] == (STATIC_BROKER_CONFIG, "--override")
    assert origins["quota.producer.default"] == (STATIC_BROKER_CONFIG, "KAFKA_QUOTA_PRODUCER_DEFAULT")
    assert origins["message.max.bytes"] == (STATIC_BROKER_CONFIG, f"{file} line 4")
    assert origins["delete.topic.enable"] == (DEFAULT_CONFIG, "default")
    assert config.warnings == []


def test_kafkas_own_file_loads_with_one_warning(tmp_path: Path) -> None:
    file = _file(tmp_path, KAFKAS_OWN)
    config = Config.load(file)
    assert config.integer("node.id") == 7
    assert config.milliseconds("log.retention.ms") == 24 * 3_600_000
    assert _addresses(config) == [("PLAINTEXT", "", 9092)], "the controller listener is skipped"
    assert [endpoint.host for endpoint in config.advertised_listeners()] == ["localhost"]
    assert config.warnings == [
        f"{file}: Kafka properties without effect: process.roles, controller.quorum.voters, "
        "listener.name.plaintext.num.network.threads, num.network.threads"
    ]
    assert config.text("log.dirs") == "/tmp/kraft-combined-logs"


VARIABLES = {
    "one underscore becomes a dot": ("KAFKA_NUM_PARTITIONS", "num.partitions"),
    "an older name of the variable": ("KAFKA_BROKER_ID", "node.id"),
}


@pytest.mark.parametrize(("key", "name"), VARIABLES.values(), ids=VARIABLES)
def test_environment_is_read_like_the_apache_image(key: str, name: str) -> None:
    assert Config.load(environ={key: "9"}).integer(name) == 9


def test_multiple_underscores_are_other_characters() -> None:
    config = Config.load(environ={"KAFKA_LISTENER_NAME_A__B___C_SASL_X": "1"})
    assert config.warnings == ["environment: Kafka properties without effect: listener.name.a_b-c.sasl.x"]


@pytest.mark.parametrize("key", ["CLUSTER_ID", "KAFKA_CLUSTER_ID", "KAFKA_SLUICE_CLUSTER_ID"])
def test_cluster_id_variable_of_other_images_is_read(key: str) -> None:
    assert Config.load(environ={key: "MkU3OEVBNTcwNTJENDM2Qk"}).text("sluice.cluster.id") == "MkU3OEVBNTcwNTJENDM2Qk"


def test_bitnami_variables_are_read() -> None:
    config = Config.load(environ={"KAFKA_CFG_NODE_ID": "7", "KAFKA_CFG_PROCESS_ROLES": "broker,controller"})
    assert config.integer("node.id") == 7
    assert config.warnings == ["environment: Kafka properties without effect: process.roles"]


def test_unknown_variables_are_ignored_with_one_warning() -> None:
    config = Config.load(
        environ={
            "KAFKA_BROKERS": "x",
            "KAFKA_HEAP_OPTS": "-Xmx1g",
            "KAFKA_ADDR": "y",
            "HOME": "/",
            "KAFKA_LOG_PREALLOCATE": "true",
        }
    )
    assert config.warnings == [
        "environment: unknown properties, ignored: KAFKA_ADDR, KAFKA_BROKERS",
        "environment: Kafka properties without effect: log.preallocate",
    ]


ONE_FOR_CLIENTS = "at least one listener for clients, each with its own name and port"
PROTOCOLS = "NAME:PROTOCOL with one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL for PLAINTEXT, separated by commas"
LOOPBACK = "a loopback address, unless sluice.admin.token is set"
INVALID_VALUES = {
    "a value below its bound": ("num.partitions=0", "an integer from 1 to 2147483647"),
    "an invalid choice": (
        "quota.profile=kip13",
        "one of by-version, kip-13, " + ", ".join(f"kafka-{name}" for name in RELEASES),
    ),
    "no rate": (
        "quota.consumer.default=fast",
        "bytes per second of at least 1, such as 2M, 512Ki or 1e6 (empty: no quota)",
    ),
    "a listener without a port": ("listeners=PLAINTEXT://localhost", "NAME://HOST:PORT"),
    "an invalid port": ("listeners=A://h:99999999", "NAME://HOST:PORT"),
    "a listener without a security protocol": (
        "listeners=INSIDE://:9093",
        "listeners of listener.security.protocol.map, without INSIDE",
    ),
    "an invalid security protocol": ("listener.security.protocol.map=PLAINTEXT:TLS,SSL:SSL", PROTOCOLS),
    "a listener without a protocol": ("listener.security.protocol.map=PLAINTEXT", PROTOCOLS),
    "a listener's own property": ("listener.name.ssl.ssl.client.auth=maybe", "one of required, requested, none"),
    "no listener for clients": ("listeners=CONTROLLER://:9093", ONE_FOR_CLIENTS),
    "two listeners of one name": ("listeners=PLAINTEXT://a:1,PLAINTEXT://b:2", ONE_FOR_CLIENTS),
    "no brokers": ("sluice.brokers=0", "an integer from 1 to 100"),
    "an address that clients cannot reach": (
        "advertised.listeners=PLAINTEXT://0.0.0.0:9092",
        "NAME://HOST:PORT with a name of listeners (PLAINTEXT) and a host clients can reach",
    ),
    "less memory than one request needs": (
        "queued.max.request.bytes=5",
        "at least socket.request.max.bytes (104857600), or -1",
    ),
    "a share group property outside its bounds": (
        "group.share.session.timeout.ms=1000",
        "at least group.share.min.session.timeout.ms (45000)",
    ),
    "a consumer group property above its bounds": (
        "group.consumer.heartbeat.interval.ms=15001",
        "at most group.consumer.max.heartbeat.interval.ms (15000)",
    ),
    "bounds that exclude all values": (
        "group.streams.max.session.timeout.ms=44999",
        "at least group.streams.min.session.timeout.ms (45000)",
    ),
    "more standby replicas than allowed": (
        "group.streams.num.standby.replicas=3",
        "at most group.streams.max.standby.replicas (2)",
    ),
    "a task offset interval below its minimum": (
        "group.streams.task.offset.interval.ms=14999",
        "at least group.streams.min.task.offset.interval.ms (15000)",
    ),
    "fewer share sessions than members": ("group.share.max.share.sessions=199", "at least group.share.max.size (200)"),
    "an unprotected admin port": ("sluice.admin.host=0.0.0.0", LOOPBACK),
    "a name that resembles loopback": ("sluice.admin.host=127.example.org", LOOPBACK),
}
INVALID_SETTINGS = {
    "an unknown name, with the closest known name": (
        "quota.producer.defualt=2M",
        "quota.producer.defualt: no such property. Did you mean quota.producer.default?",
    ),
    "a topic config, with the broker's name": (
        "retention.ms=5",
        "retention.ms: no such property. Did you mean log.retention.ms?",
    ),
    "a name like no other": ("zzz=1", "zzz: no such property. `sluice config list` lists them"),
    "no equals sign": ("num.partitions", "expected KEY=VALUE, got num.partitions"),
    "a value of two lines in one line": (
        "num.partitions=1\n2",
        "num.partitions: expected an integer from 1 to 2147483647, got '1\\n2'",
    ),
    "a secret is hidden": (
        "sluice.sasl.users=alice:secret,alice:other",
        "sluice.sasl.users: "
        "expected NAME:PASSWORD, separated by commas (a comma in one as \\,), each name once, got [hidden]",
    ),
}


@pytest.mark.parametrize(("override", "accepted"), INVALID_VALUES.values(), ids=INVALID_VALUES)
def test_invalid_value_is_named_with_what_is_accepted(override: str, accepted: str) -> None:
    name, _, value = override.partition("=")
    with pytest.raises(ConfigError) as raised:
        Config.load(overrides=[override])
    assert str(raised.value) == f"--override: {name}: expected {accepted}, got {value}"


@pytest.mark.parametrize(("override", "message"), INVALID_SETTINGS.values(), ids=INVALID_SETTINGS)
def test_invalid_setting_raises_one_line(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Config.load(overrides=[override])
    assert str(raised.value) == f"--override: {message}"


def test_properties_from_python() -> None:
    config = Config.of({"num.partitions": 3, "auto.create.topics.enable": False, "quota.producer.default": "1M"})
    assert (config.integer("num.partitions"), config.boolean("auto.create.topics.enable")) == (3, False)
    assert config.rate("quota.producer.default") == 1e6
    assert config.origin("num.partitions") == "config"
    with pytest.raises(ConfigError, match=r"^config: num\.partitions: expected an integer from 1 to "):
        Config.of({"num.partitions": 0})
    with pytest.raises(ConfigError, match=r"^config: listeners: expected NAME://HOST:PORT"):
        Config.of({"listeners": "x"})


@pytest.mark.parametrize("group_type", ["consumer", "share", "streams"])
def test_heartbeat_interval_of_groups_is_below_the_session_timeout(group_type: str) -> None:
    prefix = f"group.{group_type}"
    values = {f"{prefix}.min.session.timeout.ms": 1, f"{prefix}.session.timeout.ms": 5000}
    with pytest.raises(ConfigError, match=rf"{prefix}.heartbeat.interval.ms: expected less than .* \(5000\), got 5000"):
        Config.of(values)


def test_file_error_names_its_line(tmp_path: Path) -> None:
    file = _file(tmp_path, "# first\nnum.partitions=many\n")
    with pytest.raises(ConfigError, match=r"server\.properties line 2: num\.partitions: expected an integer"):
        Config.load(file)


def test_environment_error_names_the_variable() -> None:
    with pytest.raises(ConfigError, match=r"^KAFKA_NUM_PARTITIONS: num\.partitions: expected"):
        Config.load(environ={"KAFKA_NUM_PARTITIONS": "x"})


UNREADABLE = {
    "no file": (None, "cannot be read: No such file"),
    "not UTF-8": (b"a=\xff", "expected UTF-8 text"),
    "a broken escape": (b"a=\\u1", r"server\.properties line 1: expected \\u and four hex digits, got \\u1"),
}


@pytest.mark.parametrize(("content", "message"), UNREADABLE.values(), ids=UNREADABLE)
def test_unreadable_file_is_named(tmp_path: Path, content: bytes | None, message: str) -> None:
    file = tmp_path / "server.properties"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=message):
        Config.load(file)


RETENTION_UNITS = {
    "a week": ([], 7 * 24 * 3_600_000),
    "hours": (["log.retention.hours=1"], 3_600_000),
    "minutes before hours": (["log.retention.hours=1", "log.retention.minutes=2"], 120_000),
    "milliseconds before minutes": (["log.retention.ms=3", "log.retention.minutes=2"], 3),
    "for ever": (["log.retention.minutes=-1"], -1),
}


@pytest.mark.parametrize(("overrides", "expected_ms"), RETENTION_UNITS.values(), ids=RETENTION_UNITS)
def test_finest_retention_unit_wins(overrides: list[str], expected_ms: int) -> None:
    config = Config.load(overrides=overrides)
    assert config.milliseconds("log.retention.ms") == expected_ms
    assert TopicConfig(config, {}).integer("retention.ms") == expected_ms


RAISED_DEFAULTS = {
    "larger requests: memory limit": ("socket.request.max.bytes=1Gi", "queued.max.request.bytes"),
    "data directory: segment size": ("log.dirs=data", "log.segment.bytes"),
}


@pytest.mark.parametrize(("override", "name"), RAISED_DEFAULTS.values(), ids=RAISED_DEFAULTS)
def test_property_raises_the_default_of_another(override: str, name: str) -> None:
    config = Config.load(overrides=[override])
    assert config.integer(name) == 2**30
    assert config.of_node(2).synonyms(name) == [Synonym(name, str(2**30), DEFAULT_CONFIG)]
    assert Config.load().synonyms(name) != config.synonyms(name)
    assert Config.load(overrides=[override, f"{name}={2**30 + 1}"]).integer(name) == 2**30 + 1


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback_needs_no_token(host: str) -> None:
    assert Config.load(overrides=[f"sluice.admin.host={host}"]).text("sluice.admin.host") == host


def test_any_admin_address_is_valid_with_a_token() -> None:
    config = Config.load(overrides=["sluice.admin.host=0.0.0.0", "sluice.admin.token=t"])
    assert {setting.property.name for setting in config.entries() if setting.sensitive} == {
        "ssl.keystore.key",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.truststore.certificates",
        "ssl.truststore.password",
        "sasl.jaas.config",
        "sluice.sasl.users",
        "sluice.admin.token",
    }


def test_listeners_have_names_hosts_and_ports() -> None:
    listeners = "listeners=plaintext://[::1]:0,EXTERNAL://h:0"
    protocols = "listener.security.protocol.map=PLAINTEXT:PLAINTEXT,EXTERNAL:plaintext"
    config = Config.load(overrides=[listeners, protocols])
    assert _addresses(config) == [("PLAINTEXT", "::1", 0), ("EXTERNAL", "h", 0)]
    assert config.advertised_listeners() == []


def test_quotas_of_kip_13() -> None:
    config = Config.load(overrides=['quota.producer.override="clientA:4M,clientB:10M"', "quota.consumer.default=2M"])
    assert config.rates("quota.producer.override") == {"clientA": 4e6, "clientB": 1e7}
    assert config.rate("quota.consumer.default") == 2e6
    assert config.rate("quota.producer.default") is None


def test_override_error_names_its_position() -> None:
    with pytest.raises(ConfigError) as error:
        Config.load(overrides=["quota.producer.override=gold:4M,silver:2X"])
    assert str(error.value).startswith(
        "--override: quota.producer.override: item 2 at character 9, 'silver:2X': expected CLIENT-ID:"
    )


def test_tables_are_consistent() -> None:
    for row in [*PROPERTIES.values(), *TOPIC_PROPERTIES.values()]:
        assert row.doc.endswith("."), f"{row.name}: expected a sentence"
        if row.default is not None:
            assert text_of(row.kind.parse(row.default)) == row.default, (
                f"{row.name}: expected Kafka's spelling of the default"
            )
    assert not NAMES & PROPERTIES.keys(), "a property has an effect or not, never both"
    assert not [name for name in PROPERTIES if name.startswith(PREFIXES)]
    assert not TOPIC_DEFAULT_OF.keys() - TOPIC_PROPERTIES.keys()
    assert not set(TOPIC_DEFAULT_OF.values()) - PROPERTIES.keys()


# The accepted and the rejected values of each topic config: the results of LogConfig.validate in Kafka 4.4.0.
TOPIC_CONFIGS: dict[str, tuple[list[str], list[str]]] = {
    "retention.ms": (["-1", "0", " 5 ", "+5"], ["-2", "1e3", ""]),
    "retention.bytes": (["-5"], ["1Gi"]),
    "segment.bytes": (["1048576"], ["14", "2147483648"]),
    "internal.segment.bytes": (["100"], []),
    "cleanup.policy": (["delete,compact", "", "delete,delete"], ["Delete", "none"]),
    "compression.type": (["uncompressed"], ["GZIP", "none"]),
    "compression.gzip.level": (["-1"], ["0", "10"]),
    "message.timestamp.type": (["LogAppendTime"], ["createtime"]),
    "min.cleanable.dirty.ratio": (["0.5"], ["1.1"]),
    "min.insync.replicas": ([], ["0"]),
    "preallocate": (["TRUE"], ["yes"]),
    "leader.replication.throttled.replicas": (["*", "0:1,1:2"], ["x"]),
    "local.retention.ms": ([], ["-3"]),
    "max.compaction.lag.ms": ([], ["0"]),
    "max.message.bytes": (["0"], ["-1"]),
    "max.decompressed.message.bytes": ([], ["2147483640"]),
    "segment.index.bytes": ([], ["3"]),
    "message.format.version": ([], ["3.0"]),
    "foo.bar": ([], ["1"]),
}


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        (name, value, is_accepted)
        for name, (accepted, rejected) in TOPIC_CONFIGS.items()
        for values, is_accepted in ((accepted, True), (rejected, False))
        for value in values
    ],
)
def test_topic_config_is_validated_as_in_kafka(name: str, value: str, accepted: bool) -> None:
    problem = refused_topic_configs(Config(), {name: value})
    assert (problem is None) == accepted
    assert accepted or (problem is not None and name in problem and ("Unknown" in problem or value in problem))


INVALID_TOPIC_CONFIGS = {
    "an invalid value": (
        {"retention.ms": "x"},
        "Invalid value x for configuration retention.ms: Not a number of type LONG",
    ),
    "an unknown name": ({"foo.bar": "1"}, "Unknown topic config name: foo.bar"),
    "two inconsistent values": (
        {"min.compaction.lag.ms": "5", "max.compaction.lag.ms": "1"},
        "conflict topic config setting min.compaction.lag.ms (5) > max.compaction.lag.ms (1)",
    ),
    "an unsupported feature": (
        {"remote.storage.enable": "true"},
        "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
    ),
}


@pytest.mark.parametrize(("own", "problem"), INVALID_TOPIC_CONFIGS.values(), ids=INVALID_TOPIC_CONFIGS)
def test_invalid_topic_config_has_kafkas_message(own: dict[str, str], problem: str) -> None:
    assert refused_topic_configs(Config(), own) == problem


def test_dynamic_config_overrides_static_config() -> None:
    config = Config.load(overrides=["message.max.bytes=1000"])
    config.set_dynamic({"message.max.bytes": "3000"}, {"message.max.bytes": "2000", "log.retention.ms": "5"})
    assert (config.integer("message.max.bytes"), config.milliseconds("log.retention.ms")) == (3000, 5)
    assert config.synonyms("message.max.bytes") == [
        Synonym("message.max.bytes", "3000", DYNAMIC_BROKER_CONFIG),
        Synonym("message.max.bytes", "2000", DYNAMIC_DEFAULT_BROKER_CONFIG),
        Synonym("message.max.bytes", "1000", STATIC_BROKER_CONFIG),
        Synonym("message.max.bytes", "1048588", DEFAULT_CONFIG),
    ]
    config.set_dynamic({}, {})
    assert (config.integer("message.max.bytes"), config.milliseconds("log.retention.ms")) == (1000, 604_800_000)


def test_retention_in_hours_is_a_synonym_only_if_set() -> None:
    config = Config.load(overrides=["log.retention.hours=1"])
    assert config.synonyms("log.retention.ms") == []
    config.set_dynamic({"log.retention.ms": "5"}, {})
    assert config.synonyms("log.retention.ms") == [
        Synonym("log.retention.ms", "5", DYNAMIC_BROKER_CONFIG),
        Synonym("log.retention.hours", "1", STATIC_BROKER_CONFIG),
        Synonym("log.retention.hours", "168", DEFAULT_CONFIG),
    ]


def test_topic_config_falls_back_to_the_broker_then_to_the_default() -> None:
    broker = Config.load(overrides=["log.retention.hours=1", "message.max.bytes=1Ki"])
    topic = TopicConfig(broker, {"segment.bytes": "2097152", "cleanup.policy": "compact,delete"})
    shown = {setting.property.name: (setting.value, setting.source) for setting in topic.entries()}
    assert shown["segment.bytes"] == ("2097152", DYNAMIC_TOPIC_CONFIG)
    assert shown["cleanup.policy"] == ("compact,delete", DYNAMIC_TOPIC_CONFIG)
    assert shown["retention.ms"] == ("3600000", DEFAULT_CONFIG)  # Kafka reports this also for retention set in hours
    assert shown["max.message.bytes"] == ("1024", STATIC_BROKER_CONFIG)
    assert shown["compression.type"] == ("producer", DEFAULT_CONFIG)
    assert shown["flush.ms"] == ("9223372036854775807", DEFAULT_CONFIG)
    assert "internal.segment.bytes" not in shown
    assert topic.names("cleanup.policy") == ("compact", "delete")
    assert topic.segment_bytes() == 2_097_152


def test_internal_segment_size_takes_precedence() -> None:
    topic = TopicConfig(Config(), {"internal.segment.bytes": "100", "segment.bytes": "2097152"})
    assert topic.segment_bytes() == 100
    assert "internal.segment.bytes" in {setting.property.name for setting in topic.entries()}


def test_values_are_read_by_their_type() -> None:
    with pytest.raises(AssertionError):
        Config().integer("delete.topic.enable")
    with pytest.raises(KeyError):
        Config().integer("num.particles")
