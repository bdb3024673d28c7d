"""Kafka's Java client: one JVM for all runs, and per run a Python process that controls a client by py4j.

py4j and, with Spark's Kafka connector, kafka-clients 3.9 come with PySpark; 4.4 is downloaded likewise. The JVM starts
with the first run, and ends with the subject or with this process, which holds a pipe that the JVM reads.
"""

import asyncio
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from sluice.errors import SluiceError, SubjectError
from sluice.spark.connector import Jar, connector_for
from sluice.spark.jars import cached_jars
from sluice.spark.java import Java, find_java

from .client import Client, installed
from .driven import DrivenSubject, start_driver
from .process import SubjectProcess
from .subject import Job, OnCallback, Running

_STARTS_WITHIN_S = 30.0
_CLIENTS = "kafka-clients"
# Only these of PySpark's 200 jars are needed; fewer jars start faster.
_FROM_PYSPARK = ("py4j-", "slf4j-api-", "lz4-java-", "snappy-java-", "zstd-jni-")
_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m")

KAFKA_4 = Jar("org.apache.kafka", _CLIENTS, "4.4.0", "1ab07317eb6633241392449d329dbdc5d9251e6ffc4926860f42dd966e88bdf9")


class JavaSubject(DrivenSubject):
    """The client in a jar, by default the connector's."""

    def __init__(self, client: Client, jar: Jar | None = None) -> None:
        super().__init__(client)
        self._jar = jar
        self._jvm: _Jvm | None = None

    def version(self) -> str:
        pyspark = installed("pyspark")
        return (self._jar or _connector_jar(pyspark)).version if pyspark else ""

    def missing(self) -> str | None:
        pyspark = installed("pyspark")
        if not pyspark:
            return (
                f"{self.name}: PySpark, which brings the bridge to it, is not installed; "
                "run pip install 'kafka-sluice[spark]'"
            )
        try:
            _java(pyspark)
        except SluiceError as error:
            return f"{self.name}: {error}"
        return None

    async def prepare(self) -> None:
        await asyncio.to_thread(self._clients_jar)

    async def start(self, job: Job, on_callback: OnCallback) -> Running:
        if self._jvm is None or self._jvm.process.ended() is not None:
            self._jvm = await _Jvm.start(_java(installed("pyspark")), self._clients_jar())
        return await start_driver(self.client, job, on_callback, **self._jvm.environment)

    def _clients_jar(self) -> Path:
        pyspark = installed("pyspark")
        return cached_jars([self._jar or _connector_jar(pyspark)], _java(pyspark))[0]

    async def close(self) -> None:
        if self._jvm is not None:
            await self._jvm.process.end()
            self._jvm = None


class _Jvm:
    def __init__(self, process: SubjectProcess, port: str, token: str) -> None:
        self.process = process
        self.environment = {"SLUICE_PY4J_PORT": port, "SLUICE_PY4J_TOKEN": token}

    @classmethod
    async def start(cls, java: Java, clients: Path) -> "_Jvm":
        lines: asyncio.Queue[str] = asyncio.Queue()  # port, then token
        classpath = ":".join(map(str, [*_pyspark_jars(), clients]))
        command = [str(java.program), *_OPTIONS, "-cp", classpath, "py4j.GatewayServer"]
        process = await SubjectProcess.start(
            [*command, "--die-on-broken-pipe", "--enable-auth", "0"],
            lambda line: lines.put_nowait(line.decode().strip()),
            stdin=None,
        )
        try:
            async with asyncio.timeout(_STARTS_WITHIN_S):
                return cls(process, await lines.get(), await lines.get())
        except TimeoutError:
            why = process.ended() or "it printed no port"
            await process.end()
            raise SubjectError(f"java: the JVM did not start within {_STARTS_WITHIN_S:.0f} s: {why}") from None


_java = cache(find_java)


def _connector_jar(pyspark: str) -> Jar:
    return next(jar for jar in connector_for(pyspark) if jar.artifact == _CLIENTS)


def _pyspark_jars() -> list[Path]:
    package = find_spec("pyspark")
    assert package is not None, "called only if PySpark is installed"
    assert package.origin is not None
    return [
        jar
        for jar in sorted((Path(package.origin).parent / "jars").glob("*.jar"))
        if jar.name.startswith(_FROM_PYSPARK)
    ]
