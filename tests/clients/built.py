"""What was built of the clients in other languages, and whether it is of the files that are here now.

A build is a folder below .venv/clients. It has a file `built`, with the stamp of what it was made from, or a file
`reason`, which says why it could not be made. `python -m tests.clients.build` makes them.
"""

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
BUILT = ROOT / ".venv" / "clients"
_HERE = Path(__file__).parent


class Sources(NamedTuple):
    """What a client is built from."""

    folder: str
    variant: str = ""  # which of those that are made from these files: a version, or a folder

    @property
    def path(self) -> Path:
        """Where the files are."""
        return _HERE / self.folder


SOURCES = {
    "kafka-python-2": Sources("kafka_python_2"),
    "java-3.9": Sources("java", "3.9.2"),
    "java-4": Sources("java", "4.4.0"),
    "kafka-tools": Sources("kafka_tools", "4.3.1"),  # the newest there is on Maven Central
    "franz-go": Sources("go", "franz"),
    "sarama": Sources("go", "sarama"),
    "kafkajs": Sources("node"),
}


@cache
def stamp_of(sources: Sources) -> str:
    """Changes with everything that a build is made from."""
    digest = hashlib.sha256(sources.variant.encode())
    for file in sorted(sources.path.rglob("*.*")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def missing(client: str, root: Path = BUILT) -> str | None:
    """Why there is no build of a client that can be used, if there is none: a stale one would fail at what is new."""
    built, reason = root / client / "built", root / client / "reason"
    if built.exists():
        is_stale = built.read_text() != stamp_of(SOURCES[client])
        return "built from other files than are here: `make test-clients` builds it anew" if is_stale else None
    return reason.read_text() if reason.exists() else "not built here, which `make test-clients` does"
