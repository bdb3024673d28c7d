"""Kafka's kafka-configs prints the same for sluice as for Apache Kafka 4.4 (`configs_command.txt`)."""

import shutil
from pathlib import Path

import pytest

from tests.clients.configs_command import EXPECTED, LIBS, transcript
from tests.support.broker_process import running_broker

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="no Java found; install a JDK of version 17 or later"),
    pytest.mark.skipif(LIBS is None, reason="no jars of Kafka; set SLUICE_KAFKA_LIBS to their folder"),
    pytest.mark.timeout(600),
]


def test_quota_session_prints_the_same_as_apache_kafka(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log") as broker:
        assert transcript(broker.bootstrap, tmp_path) == EXPECTED.read_text()
