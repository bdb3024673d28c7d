"""Each version of PySpark that is served has its four jars; another is told what to do."""

import re

import pytest

from sluice.errors import SluiceError
from sluice.pipeline.connector import CONNECTORS, connector_for


@pytest.mark.parametrize("version", CONNECTORS)
def test_a_served_version_has_its_own_connector_and_three_jars_beside_it(version: str) -> None:
    connector, *beside = connector_for(version)
    assert connector.file_name == f"spark-sql-kafka-0-10_2.13-{version}.jar"
    names = [jar.artifact for jar in beside]
    assert names == ["spark-token-provider-kafka-0-10_2.13", "kafka-clients", "commons-pool2"]
    assert [jar.sha256 for jar in (connector, *beside) if not re.fullmatch("[0-9a-f]{64}", jar.sha256)] == []


def test_another_version_is_told_which_are_served_and_that_jars_can_be_given() -> None:
    with pytest.raises(SluiceError, match=r"PySpark 3\.5\.4 has no .*install one of 4\.0\.0, 4\.2\.0 .*--jars DIR"):
        connector_for("3.5.4")
