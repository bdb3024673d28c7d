"""Kafka's own kafka-configs prints of sluice what it prints of Apache Kafka: `configs_command.txt`, of 4.4."""

import shutil
from pathlib import Path

import pytest

from tests.clients.configs_command import EXPECTED, LIBS, transcript
from tests.support.broker_process import running_broker

pytestmark = [
    pytest.mark.skipif(shutil.which("java") is None, reason="there is no java here"),
    pytest.mark.skipif(LIBS is None, reason="SLUICE_KAFKA_LIBS names no folder with a Kafka's jars"),
    pytest.mark.timeout(600),
]


def test_a_session_with_quotas_is_that_of_apache_kafka(tmp_path: Path) -> None:
    with running_broker(tmp_path / "log") as broker:
        assert transcript(broker.bootstrap, tmp_path) == EXPECTED.read_text()
