"""The jars of Spark's Kafka connector: four for each PySpark version, with their digests.

PySpark contains the connector's other dependencies.
"""

from typing import NamedTuple

from sluice.errors import SluiceError


class Jar(NamedTuple):
    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


# The newest token provider on Maven Central. The connector uses it only to check whether a job has delegation tokens.
_TOKEN_PROVIDER = Jar(
    "org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0",
    "f2be3b76f9e6cbe63379d4e4e0dc14f59dbf056ae2ad16ff15ac108004c86767",
)  # fmt: skip


def _connector(pyspark: str, sha256: str, clients: tuple[str, str], pool: tuple[str, str]) -> tuple[Jar, ...]:
    """Return the jars; `clients` and `pool` are the versions in the connector's POM, with their digests."""
    return (
        Jar("org.apache.spark", "spark-sql-kafka-0-10_2.13", pyspark, sha256),
        _TOKEN_PROVIDER,
        Jar("org.apache.kafka", "kafka-clients", *clients),
        Jar("org.apache.commons", "commons-pool2", *pool),
    )


CONNECTORS: dict[str, tuple[Jar, ...]] = {
    "4.0.0": _connector(
        "4.0.0",
        "33a3b8b04df4a2e43c9d5bf8ca5972936a1ac662f2714e014d00ef6f27468bf3",
        clients=("3.9.0", "15c1e137f2c2c94398e27abc4060a03b6bde10bf9fac15e8f70c02320b202f18"),
        pool=("2.12.0", "6d3bd18df8410f3e31b031aca582cc109342358a62a2759ebd0c4cdf30d06f8b"),
    ),
    "4.2.0": _connector(
        "4.2.0",
        "64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705",
        clients=("3.9.2", "014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8"),
        pool=("2.13.1", "f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f"),
    ),
}


def connector_for(pyspark_version: str) -> tuple[Jar, ...]:
    jars = CONNECTORS.get(pyspark_version)
    if jars is None:
        known = ", ".join(CONNECTORS)
        raise SluiceError(
            f"PySpark {pyspark_version}: unknown Kafka connector; expected PySpark {known}. Install one of these "
            "(pip install 'kafka-sluice[spark]' 'pyspark==VERSION'), or pass a folder of jars with --jars DIR"
        )
    return jars
