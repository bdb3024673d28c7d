"""Control records of the quorum in a metadata log or snapshot (KIP-595, KIP-630, KIP-853).

The key has a version and a type of two bytes each; the value is one of these messages, in the version in its first
field.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, int16, int32, int64, string, uint16, uuid

from .message import MetadataMessage


class Voter(Message):
    voter_id: int32 = 0
    voter_directory_id: Annotated[uuid, V("1+")] = ZERO_UUID


class LeaderChangeMessage(MetadataMessage):
    version: int16 = 0
    leader_id: int32 = 0
    voters: list[Voter] = []
    granting_voters: list[Voter] = []


class SnapshotHeaderRecord(MetadataMessage):
    version: int16 = 0
    last_contained_log_timestamp: int64 = 0  # ms; of the snapshot's last record


class SnapshotFooterRecord(MetadataMessage):
    """The last record of a snapshot; without it the file is incomplete."""

    version: int16 = 0


class KRaftVersionRecord(MetadataMessage):
    """The version of the quorum's protocol; 1 supports adding and removing voters."""

    version: int16 = 0
    kraft_version: int16 = 0


class VoterEndpoint(Message):
    name: string = ""
    host: string = ""
    port: uint16 = 0


class KRaftVersionFeature(Message):
    min_supported_version: int16 = 0
    max_supported_version: int16 = 0


class RegisteredVoter(Message):
    voter_id: int32 = 0
    voter_directory_id: uuid = ZERO_UUID
    endpoints: list[VoterEndpoint] = []
    kraft_version_feature: KRaftVersionFeature = field(default_factory=KRaftVersionFeature)


class VotersRecord(MetadataMessage):
    version: int16 = 0
    voters: list[RegisteredVoter] = []
