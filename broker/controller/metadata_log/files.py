"""The small files of a metadata log, and atomic writes of files.

`quorum-state` (Kafka's FileQuorumStateStore) has the quorum's leader and epoch, `leader-epoch-checkpoint` the first
offset of each epoch, `partition.metadata` the topic id.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from sluice.broker.log.disk.text_files import UnreadableFileError, read_checkpoint
from sluice.broker.metadata.topic import METADATA_TOPIC
from sluice.errors import SluiceError
from sluice.protocol.types import ZERO_UUID
from sluice.protocol.uuids import printed_uuid

METADATA_DIRECTORY = f"{METADATA_TOPIC}-0"
_METADATA_TOPIC_ID = bytes(15) + b"\1"  # Kafka's Uuid.METADATA_TOPIC_ID
_QUORUM_STATE = "quorum-state"
_LEADER_EPOCHS = "leader-epoch-checkpoint"
_PARTITION_METADATA = "partition.metadata"
_NO_VOTE = -1
_MOST_EPOCHS = 2**31 - 1

log = logging.getLogger("sluice.broker")


class QuorumState(NamedTuple):
    """The leader and epoch of the quorum; `kraft_version` 1 means dynamic voters (KIP-853)."""

    leader_id: int
    leader_epoch: int
    kraft_version: int


def write_whole(path: Path, data: bytes) -> None:
    beside = path.with_name(f"{path.name}.tmp")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)


def sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_quorum_epoch(directory: Path) -> int:
    path = directory / _QUORUM_STATE
    try:
        state = msgspec.json.decode(path.read_bytes())
        epoch = state["leaderEpoch"]
        if not isinstance(epoch, int) or not 0 <= epoch < _MOST_EPOCHS:
            raise TypeError(f"leaderEpoch is {epoch!r}")
    except FileNotFoundError:
        return 0
    except (OSError, msgspec.DecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise SluiceError(f"{path}: invalid quorum state ({error}); restore the file or delete it") from None
    return epoch


def write_quorum_state(directory: Path, state: QuorumState) -> None:
    form: dict[str, object] = {"leaderId": state.leader_id, "leaderEpoch": state.leader_epoch, "votedId": _NO_VOTE}
    if state.kraft_version:
        form["votedDirectoryId"] = printed_uuid(ZERO_UUID)
    else:
        voters = [{"voterId": state.leader_id}]
        form = {"clusterId": "", **form, "appliedOffset": 0, "currentVoters": voters}
    form["data_version"] = min(state.kraft_version, 1)
    write_whole(directory / _QUORUM_STATE, msgspec.json.encode(form))


def read_leader_epochs(directory: Path) -> list[tuple[int, int]]:
    try:
        return [(int(epoch), int(offset)) for epoch, offset in read_checkpoint(str(directory / _LEADER_EPOCHS))]
    except (UnreadableFileError, ValueError) as error:
        log.warning("ignoring an unreadable checkpoint", extra={"reason": str(error)})
        return []


def write_leader_epochs(directory: Path, epochs: Sequence[tuple[int, int]]) -> None:
    lines = ["0", str(len(epochs)), *(f"{epoch} {offset}" for epoch, offset in epochs)]
    write_whole(directory / _LEADER_EPOCHS, "".join(f"{line}\n" for line in lines).encode())


def write_partition_metadata(directory: Path) -> None:
    if (directory / _PARTITION_METADATA).exists():
        return
    text = f"version: 0\ntopic_id: {printed_uuid(_METADATA_TOPIC_ID)}"
    write_whole(directory / _PARTITION_METADATA, text.encode())
