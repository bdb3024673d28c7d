"""The small files beside a metadata log, and how a file is put in place whole.

`quorum-state` (Kafka's FileQuorumStateStore) says who leads the quorum in which epoch, `leader-epoch-checkpoint` where
each epoch begins, `partition.metadata` which topic the directory is of. Each is written beside its place and renamed.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from sluice.errors import SluiceError
from sluice.protocol.types import ZERO_UUID
from sluice.protocol.uuids import printed_uuid

METADATA_TOPIC = "__cluster_metadata"
METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
_METADATA_TOPIC_ID = bytes(15) + b"\1"  # Kafka's Uuid.METADATA_TOPIC_ID
_QUORUM_STATE = "quorum-state"
_LEADER_EPOCHS = "leader-epoch-checkpoint"
_PARTITION_METADATA = "partition.metadata"
_NO_VOTE = -1


class QuorumState(NamedTuple):
    """Who leads the quorum. `kraft_version` 1 is that of voters that can change (KIP-853)."""

    leader_id: int
    leader_epoch: int
    kraft_version: int


def write_whole(path: Path, data: bytes) -> None:
    """Puts `data` where `path` is, all of it or, if that fails, nothing."""
    beside = path.with_name(f"{path.name}.tmp")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def sync_directory(directory: Path) -> None:
    """Makes names that came and went in `directory` last."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_quorum_epoch(directory: Path) -> int:
    """The epoch that `quorum-state` says, 0 where it is not there. Raises SluiceError where it cannot be read."""
    path = directory / _QUORUM_STATE
    try:
        state = msgspec.json.decode(path.read_bytes())
        epoch = state["leaderEpoch"]
        if not isinstance(epoch, int):
            raise TypeError(f"leaderEpoch is {epoch!r}")
    except FileNotFoundError:
        return 0
    except (OSError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise SluiceError(f"{path}: cannot be read as a quorum's state ({error})") from None
    return epoch


def write_quorum_state(directory: Path, state: QuorumState) -> None:
    """Writes `quorum-state` in the version that belongs to the quorum's protocol."""
    form: dict[str, object] = {"leaderId": state.leader_id, "leaderEpoch": state.leader_epoch, "votedId": _NO_VOTE}
    if state.kraft_version:
        form["votedDirectoryId"] = printed_uuid(ZERO_UUID)
    else:
        voters = [{"voterId": state.leader_id}]
        form = {"clusterId": "", **form, "appliedOffset": 0, "currentVoters": voters}
    form["data_version"] = min(state.kraft_version, 1)
    write_whole(directory / _QUORUM_STATE, msgspec.json.encode(form))


def write_leader_epochs(directory: Path, epochs: Sequence[tuple[int, int]]) -> None:
    """Writes each epoch and its first offset, as Kafka's CheckpointFile has them."""
    lines = ["0", str(len(epochs)), *(f"{epoch} {offset}" for epoch, offset in epochs)]
    write_whole(directory / _LEADER_EPOCHS, "".join(f"{line}\n" for line in lines).encode())


def write_partition_metadata(directory: Path) -> None:
    """Says that this is the directory of the metadata topic, where nobody said it before."""
    if (directory / _PARTITION_METADATA).exists():
        return
    text = f"version: 0\ntopic_id: {printed_uuid(_METADATA_TOPIC_ID)}"
    write_whole(directory / _PARTITION_METADATA, text.encode())
