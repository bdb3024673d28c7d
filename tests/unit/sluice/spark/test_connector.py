"""The jars of each supported PySpark version; other versions are an error with a remedy."""

import re

import pytest

from sluice.errors import SluiceError
from sluice.spark.connector import CONNECTORS, connector_for


@pytest.mark.parametrize("version", CONNECTORS)
def test_a_supported_version_has_its_connector_and_three_other_jars(version: str) -> None:
    connector, *others = connector_for(version)
    assert connector.file_name == f"spark-sql-kafka-0-10_2.13-{version}.jar"
    names = [jar.artifact for jar in others]
    assert names == ["spark-token-provider-kafka-0-10_2.13", "kafka-clients", "commons-pool2"]
    assert [jar.sha256 for jar in (connector, *others) if not re.fullmatch("[0-9a-f]{64}", jar.sha256)] == []


def test_the_error_of_another_version_names_the_supported_ones_and_the_option_for_jars() -> None:
    with pytest.raises(SluiceError, match=r"PySpark 3\.5\.4: .* expected PySpark 4\.0\.0, 4\.2\.0\. .*--jars DIR"):
        connector_for("3.5.4")
