"""Tests of fleets written as text."""

import pytest
from msgspec.structs import replace

from sluice.errors import ConfigError
from sluice.fleet.models.mix import parse_mix
from sluice.fleet.models.presets import BEFORE_KIP_580, KAFKA, caveats


def test_a_mix_has_a_group_for_each_model() -> None:
    assert parse_mix("kafka-4.4:6000, kip-580-before:4000") == [
        ("kafka-4.4", KAFKA, 6000),
        ("kip-580-before", BEFORE_KIP_580, 4000),
    ]


def test_settings_apply_to_all_models_or_one() -> None:
    settings = ("acks=1", "retry.backoff.ms=5", "kafka-4.4.loop=closed", "retry.backoff.wraps=true")
    kafka, before = parse_mix("kafka-4.4:1,kip-580-before:1", settings)
    assert kafka.model == replace(KAFKA, acks="1", retry_backoff_ms=5, loop="closed", retry_backoff_wraps=True)
    assert (before.model.acks, before.model.loop, before.model.retry_backoff_ms) == ("1", "open", 5)


IMPOSSIBLE = [
    ("jav:5", "acks=1", "--fleet jav:5: unknown model; expected one of kafka-4.4, java, kip-580-before, sluice,"),
    ("kafka-4.4", "acks=1", "--fleet kafka-4.4: expected MODEL:CLIENTS with 1 to 10000000 clients, got nothing"),
    ("kafka-4.4:0", "acks=1", "--fleet kafka-4.4: expected MODEL:CLIENTS"),
    ("kafka-4.4:-1", "acks=1", "--fleet kafka-4.4: expected MODEL:CLIENTS"),
    ("kafka-4.4:99999999999999", "acks=1", "--fleet kafka-4.4: expected MODEL:CLIENTS"),
    ("kafka-4.4:1,kafka-4.4:2", "acks=1", "--fleet kafka-4.4: expected each model once"),
    ("kafka-4.4:1", "acks", "--set acks: expected NAME=VALUE or MODEL.NAME=VALUE"),
    ("kafka-4.4:1", "ack=1", "--set ack=1: unknown setting; expected one of acks, coordinator.lookup,"),
    ("kafka-4.4:1", "acks=2", "--set acks=2: expected one of 1, all, got 2"),
    ("kafka-4.4:1", "requests.per.s=0", "--set requests.per.s=0: expected a rate above 0, up to 1000"),
    ("kafka-4.4:1", "retry.backoff.ms=-1", "--set retry.backoff.ms=-1: expected milliseconds, at least 0"),
    ("kafka-4.4:1", "retry.backoff.ms=x", "--set retry.backoff.ms=x: expected a number, true, false or null, got x"),
]


@pytest.mark.parametrize(("mix", "setting", "problem"), IMPOSSIBLE)
def test_an_impossible_fleet_is_refused(mix: str, setting: str, problem: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_mix(mix, [setting])
    assert str(raised.value).startswith(problem)


def test_models_that_differ_from_their_client_or_were_not_compared_are_named() -> None:
    assert caveats(["kafka-4.4", "aiokafka"]) == []
    different, unknown = caveats(["librdkafka", "kafka-4.4", "of-a-report", "librdkafka"])
    assert different.startswith("librdkafka: connections and Metadata requests")
    assert unknown == "of-a-report: not compared with its client"
