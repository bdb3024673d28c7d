"""Kafka's kafka-configs prints the same for sluice as for Apache Kafka 4.4 (`configs_command.txt`)."""

from pathlib import Path

import pytest

from tests.clients.configs_command import EXPECTED, transcript
from tests.support.broker_process import running_broker


@pytest.mark.kafka_commands
def test_quota_session_prints_the_same_as_apache_kafka(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log") as broker:
        assert transcript(broker.bootstrap) == EXPECTED.read_text()
