"""Settings of a Streams application, and those derived for its clients."""

import logging

import pytest

from sluice.client.config import Given, consumer_config, producer_config
from sluice.errors import ConfigError
from sluice.streams.config import StreamsConfig
from sluice.streams.config_table import STREAMS

NEEDED = {"application.id": "app", "bootstrap.servers": "a:1"}


def config(given: Given | None = None) -> StreamsConfig:
    return StreamsConfig({**NEEDED, **(given or {})})


def test_every_default_is_valid() -> None:
    assert set(STREAMS.properties).isdisjoint(STREAMS.without_effect)
    for row in STREAMS.properties.values():
        assert row.default is None or row.kind.parse(row.default) is not None


DEFAULTS = [
    ("task.timeout.ms", 300_000),
    ("retry.backoff.ms", 100),
    ("commit.interval.ms", 30_000),
    ("poll.ms", 100),
    ("max.task.idle.ms", 0),
    ("buffered.records.per.partition", 1000),
    ("replication.factor", -1),
    ("processing.guarantee", "at_least_once"),
]


@pytest.mark.parametrize(("name", "value"), DEFAULTS)
def test_defaults_are_kafkas(name: str, value: object) -> None:
    assert config().value(name) == value


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"task.timeout.ms": -1}, "streams: task.timeout.ms: expected an integer of at least 0"),
        ({"processing.guarantee": "exactly_once_v2"}, "streams: processing.guarantee: expected one of at_least_once"),
        ({"num.standby.replicas": 1}, "streams: num.standby.replicas: expected one of 0"),
        ({"num.stream.threads": 4}, "streams: num.stream.threads: expected one of 1"),
        ({"group.protocol": "streams"}, "streams: group.protocol: expected one of classic"),
        ({"task.timeout": 1}, "streams: task.timeout: no such property. Did you mean task.timeout.ms?"),
        ({"producer.acls": 1}, "streams: producer.acls: no such property. Did you mean producer.acks?"),
        ({"producer.acks": 7}, "producer: acks: expected one of all, -1, 0, 1, got 7"),
        ({"main.consumer.max.poll.records": 0}, "consumer: max.poll.records: expected an integer from 1 to 2147483647"),
        ({"admin.retries": -1}, "admin: retries: expected an integer from 0 to 2147483647"),
        ({"application.id": ""}, "streams: application.id is missing"),
        ({"bootstrap.servers": "a"}, "streams: bootstrap.servers: expected HOST:PORT, separated by commas, each once"),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, dict) else "",
)
def test_invalid_setting_raises_one_line(given: Given, line: str) -> None:
    with pytest.raises(ConfigError) as raised:
        config(given)
    assert str(raised.value).startswith(line)
    assert "\n" not in str(raised.value)


def test_clients_have_streams_defaults() -> None:
    found = config()
    assert found.producer("p")["linger.ms"] == "100"
    main = consumer_config(found.consumer("main", "c"))
    assert main.text("auto.offset.reset") == "earliest"
    assert main.integer("max.poll.records") == 1000
    assert main.text("group.id") == "app"
    assert main.text("client.id") == "c"
    assert not main.boolean("enable.auto.commit")
    for which in ("restore", "global"):
        other = consumer_config(found.consumer(which, "r"))
        assert other.value("group.id") is None
        assert other.text("auto.offset.reset") == "none"


def test_prefixed_setting_overrides_the_unprefixed_one_of_all_clients() -> None:
    found = config(
        {
            "request.timeout.ms": 1,
            "consumer.request.timeout.ms": 2,
            "global.consumer.request.timeout.ms": 3,
            "admin.request.timeout.ms": 4,
            "linger.ms": 6,
            "producer.client.id": "mine",
        }
    )
    assert [found.consumer(which, "c")["request.timeout.ms"] for which in ("main", "restore", "global")] == [2, 2, 3]
    assert found.admin("a")["request.timeout.ms"] == 4
    assert found.producer("p")["request.timeout.ms"] == 1
    assert producer_config(found.producer("p")).integer("linger.ms") == 6
    assert found.producer("p")["client.id"] == "p", "fixed by Streams"
    assert "linger.ms" not in found.admin("a")


def test_leader_time_limit_is_half_of_the_consumers_poll_interval() -> None:
    assert config().max_poll_interval_ms == 300_000
    assert config({"main.consumer.max.poll.interval.ms": 20_000}).max_poll_interval_ms == 20_000
    assert config({"max.poll.interval.ms": 20_000}).max_poll_interval_ms == 20_000


def test_retries_logs_a_warning_and_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="sluice.client"):
        found = config({"retries": 0, "admin.retries": 5})
    assert caplog.messages == ["retries has no effect; set task.timeout.ms, or producer.retries and admin.retries"]
    assert "retries" in found.warnings
    assert "retries" not in found.producer("p")
    assert found.admin("a")["retries"] == 5


def test_client_setting_fixed_by_streams_logs_a_warning() -> None:
    assert config({"group.protocol": "classic"}).warnings == {}
    assert "consumer.group.protocol" in config({"consumer.group.protocol": "consumer"}).warnings["decided"]
    found = config({"consumer.enable.auto.commit": "true", "consumer.group.id": "mine"})
    assert list(found.warnings) == ["decided"]
    assert "consumer.enable.auto.commit, consumer.group.id" in found.warnings["decided"]
    main = found.consumer("main", "c")
    assert (main["enable.auto.commit"], main["group.id"]) == ("false", "app")


def test_topic_settings_are_passed_to_topics() -> None:
    assert config({"topic.segment.bytes": 1000, "topic.cleanup.policy": "delete"}).topic_configs == {
        "segment.bytes": "1000",
        "cleanup.policy": "delete",
    }


def test_jvm_only_settings_are_accepted() -> None:
    assert config({"state.dir": "/tmp/x", "default.key.serde": "Bytes"}).warnings == {}
