"""The builds of the clients in other languages, and whether they match the current sources.

A build is a folder below .venv/clients with a file `built`, the stamp of its sources, or a file `reason`, which states
why it could not be built. `python -m tools.clients.build` builds the clients.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BUILT = ROOT / ".venv" / "clients"

# Starts the Java driver: small heaps and a fast start; a call takes milliseconds.
JAVA = (
    "java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-cp", "classes:lib/*", "Main",
)  # fmt: skip


class Sources(NamedTuple):
    """The sources of one client."""

    folder: str
    variant: str = ""  # which client of these sources: a version, or a folder

    @property
    def path(self) -> Path:
        return ROOT / self.folder


SOURCES = {
    "kafka-python-2": Sources("tests/clients/kafka_python_2"),
    "java-3.9": Sources("tests/clients/java", "3.9.2"),
    "java-4": Sources("tests/clients/java", "4.4.0"),
    "kafka-tools": Sources("tests/clients/kafka_tools", "4.3.1"),  # the newest on Maven Central
    "kafka-broker": Sources("tools/differential/kafka", "4.4.0"),
    "kafka-streams": Sources("tests/clients/java_streams", "4.3.1"),  # as above
    "kafka-connect": Sources("tests/ecosystem/connect", "4.3.1"),
    "flink": Sources("tests/ecosystem/flink", "1.20.5"),
    "apicurio": Sources("tests/ecosystem/apicurio", "3.3.3"),
    "python-tools": Sources("tests/ecosystem/python"),
    "franz-go": Sources("tests/clients/go", "franz"),
    "sarama": Sources("tests/clients/go", "sarama"),
    "kafkajs": Sources("tests/clients/node"),
}


@cache
def stamp_of(sources: Sources) -> str:
    """Return a digest of everything that the build depends on."""
    digest = hashlib.sha256(sources.variant.encode())
    for file in sorted(sources.path.rglob("*.*")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def missing(client: str, root: Path = BUILT) -> str | None:
    """Return why a client has no usable build; None if it has one. A stale build would fail new scenarios."""
    built, reason = root / client / "built", root / client / "reason"
    build = f"run `python -m tools.clients.build {client}`"
    if built.exists():
        return None if built.read_text() == stamp_of(SOURCES[client]) else f"built from other sources; {build}"
    return reason.read_text() if reason.exists() else f"not built; {build}"
