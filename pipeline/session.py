"""A SparkSession that reads and writes Kafka, with nothing to be set up by hand.

Started by `spark-submit` a job has its session's settings and jars from there, on whatever cluster that is; started as
a plain Python program it gets a Spark of its own in this machine: Java (java.py), and the jars that its PySpark needs
to speak Kafka (jars.py), are found.
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

# What spark-submit sets for the Python program that it starts.
_SUBMITTED = "PYSPARK_GATEWAY_PORT"

_QUIET = {
    "spark.log.level": "ERROR",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
# Within one machine nobody else has to reach the driver.
_ALONE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}


def open_session(
    name: str,
    *,
    master: str = "local[*]",
    jars: Path | None = None,
    settings: Mapping[str, str] | None = None,
) -> "SparkSession":
    """A session in which the format `kafka` works: that of spark-submit, or a new one on this machine.

    `jars` is a folder with the connector's jars, instead of those that are known; `settings` are Spark's properties.
    Raises SluiceError: what is missing and how to get it.
    """
    pyspark_version = installed_pyspark()
    if _SUBMITTED in os.environ:
        return open_session_without_kafka(name, settings=settings)
    java = find_java(pyspark_version)
    files = fetched_jars(pyspark_version, java) if jars is None else given_jars(jars, pyspark_version)
    found = {"spark.jars": ",".join(map(str, files)), **(settings or {})}
    return open_session_without_kafka(name, master=master, settings=found)


def open_session_without_kafka(
    name: str, *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> "SparkSession":
    """The same for a job that reads files: no jars are needed."""
    pyspark_version = installed_pyspark()
    if _SUBMITTED in os.environ:
        from pyspark.sql import SparkSession

        return _builder(SparkSession, name, settings or {}).getOrCreate()
    os.environ["JAVA_HOME"] = str(find_java(pyspark_version).home)
    # Spark would start `python3`, which may be another one, for what jobs do in Python.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    alone = _ALONE if master.startswith("local") else {}
    found = {**_QUIET, **alone, "spark.master": master, **(settings or {})}
    return _builder(SparkSession, name, found).getOrCreate()


def installed_pyspark() -> str:
    """The version of PySpark. Raises SluiceError where there is none."""
    try:
        return version("pyspark")
    except PackageNotFoundError:
        raise SluiceError("PySpark is not installed: pip install 'kafka-sluice[spark]'") from None


def _builder(session: "type[SparkSession]", name: str, settings: Mapping[str, str]) -> "SparkSession.Builder":
    builder = session.builder.appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    return builder
