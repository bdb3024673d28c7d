"""Data directories that real Kafka nodes wrote: one node, broker and controller, 3.9.1 and 4.4.0.

Each was filled through clients: topics (made, extended, deleted), configs of topics, brokers, groups and client
metrics, quotas, ACLs, SCRAM credentials, records of every codec, committed and aborted transactions, offsets of groups.
Then the node was stopped, started, and stopped again. 3.9.1 has neither configs of groups nor a KIP-848 group.
"""

import tarfile
from pathlib import Path

RELEASES = ("3.9.1", "4.4.0")
_FIXTURES = Path(__file__).parent.parent / "fixtures"


def unpack(release: str, directory: Path) -> Path:
    """Copy the data directory of this release's node below `directory`, and return its path."""
    with tarfile.open(_FIXTURES / f"kafka-{release}-data.tar.xz") as archive:
        archive.extractall(directory, filter="data")
    return directory / "data"
