"""A SparkSession that reads and writes Kafka, without manual setup.

Under `spark-submit` a job uses that session's settings and jars. A plain Python program starts Spark on this machine,
with the Java of java.py and the Kafka connector of jars.py.
"""

import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from sluice.errors import SluiceError

from .jars import fetched_jars, given_jars
from .java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Set by spark-submit for the Python program that it starts.
SUBMITTED = "PYSPARK_GATEWAY_PORT"

_QUIET = {
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# On one machine no other host has to reach the driver.
_ALONE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def open_session(
    name: str, *, master: str = "local[*]", jars: Path | None = None, settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """Return a session with the format `kafka`: that of spark-submit, or a new one on this machine.

    Args:
        name: the application name
        master: ignored under spark-submit
        jars: a folder with the connector's jars; None downloads them
        settings: Spark properties

    Raises:
        SluiceError: if PySpark, Java or a jar is missing
    """
    pyspark_version = installed_pyspark()
    if SUBMITTED in os.environ:
        return open_session_without_kafka(name, settings=settings)
    java = find_java(pyspark_version)
    files = fetched_jars(pyspark_version, java) if jars is None else given_jars(jars, pyspark_version)
    found = {"spark.jars": ",".join(map(str, files)), **(settings or {})}
    return open_session_without_kafka(name, master=master, settings=found)


def open_session_without_kafka(
    name: str, *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """Like `open_session`, without the connector's jars, for a job that reads files."""
    pyspark_version = installed_pyspark()
    if SUBMITTED in os.environ:
        from pyspark.sql import SparkSession

        return _builder(SparkSession, name, settings or {}).getOrCreate()
    os.environ["JAVA_HOME"] = str(find_java(pyspark_version).home)
    # By default Spark's workers run `python3`, which may be another installation.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    alone = _ALONE if master.startswith("local") else {}
    found = {**_QUIET, **alone, "spark.master": master, **(settings or {})}
    return _builder(SparkSession, name, found).getOrCreate()


def installed_pyspark() -> str:
    try:
        return version("pyspark")
    except PackageNotFoundError:
        raise SluiceError("PySpark is not installed; run pip install 'kafka-sluice[spark]'") from None


def _builder(session: "type[SparkSession]", name: str, settings: Mapping[str, str]) -> "SparkSession.Builder":
    builder = session.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder
