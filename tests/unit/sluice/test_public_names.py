"""Documented modules and names can be imported."""

from importlib import import_module
from pkgutil import iter_modules

import pytest

import sluice.quotas
import sluice.streams

PUBLIC = {
    "sluice": ("Broker", "Proxy", "SyncBroker", "SyncProxy"),
    "sluice.broker.scenarios.model": ("Scenario",),
    "sluice.cli.logs": (),
    "sluice.cli.pipeline": ("pipeline",),
    "sluice.client.admin": ("AdminClient", "NewTopic", "ConfigResource", "TopicPartition"),
    "sluice.client.backoff": ("ExponentialBackoff",),
    "sluice.client.config": ("producer_config", "consumer_config", "admin_config"),
    "sluice.client.consumer": ("Consumer", "ConsumerRecord", "OffsetAndMetadata", "TopicPartition"),
    "sluice.client.errors": ("KafkaException", "TimeoutException"),
    "sluice.client.producer": ("Producer", "RecordMetadata"),
    "sluice.client.retry_sites": ("RetrySite",),
    "sluice.clock": ("Clock", "ManualClock"),
    "sluice.errors": ("SluiceError", "ConfigError", "RemoteProtocolError"),
    "sluice.explore": ("explore", "replay", "Run", "AtLeastOnce"),
    "sluice.faults": (),
    "sluice.journal_events": (),
    "sluice.kafka_test_case": ("KafkaTestCase",),
    "sluice.metrics": ("METRICS",),
    "sluice.spark.jars": (),
    "sluice.spark.java": (),
    "sluice.spark.session": ("open_session",),
    "sluice.pytest_plugin": ("kafka_broker",),
    "sluice.scenarios": (),
    "sluice.testing": ("run",),
}


@pytest.mark.parametrize("module", PUBLIC)
def test_documented_module_has_its_names(module: str) -> None:
    imported = import_module(module)
    assert [name for name in PUBLIC[module] if not hasattr(imported, name)] == []


@pytest.mark.parametrize(
    "module",
    [
        found.name
        for package in (sluice.quotas, sluice.streams)
        for found in iter_modules(package.__path__, f"{package.__name__}.")
    ],
)
def test_each_module_of_quotas_and_streams_can_be_imported_alone(module: str) -> None:
    assert import_module(module).__doc__
