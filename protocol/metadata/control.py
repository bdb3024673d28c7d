"""Control records of the quorum in a metadata log or snapshot (KIP-595, KIP-630, KIP-853).

The key has a version and a type of two bytes each; the value is one of these messages, in the version in its first
field.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int16, int32, int64, string, uint16, uuid

from .message import MetadataMessage


class Voter(Message):
    voter_id: int32 = 0
    voter_directory_id: Annotated[uuid, V("1+")] = ZERO_UUID


class LeaderChangeMessage(MetadataMessage):
    TYPE: ClassVar[int] = 2
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    version: int16 = 0
    leader_id: int32 = 0
    voters: list[Voter] = []
    granting_voters: list[Voter] = []


class SnapshotHeaderRecord(MetadataMessage):
    TYPE: ClassVar[int] = 3
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    version: int16 = 0
    last_contained_log_timestamp: int64 = 0  # ms; of the snapshot's last record


class SnapshotFooterRecord(MetadataMessage):
    """The last record of a snapshot; without it the file is incomplete."""

    TYPE: ClassVar[int] = 4
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    version: int16 = 0


class KRaftVersionRecord(MetadataMessage):
    """The version of the quorum's protocol; 1 supports adding and removing voters."""

    TYPE: ClassVar[int] = 5
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

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
    TYPE: ClassVar[int] = 6
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    version: int16 = 0
    voters: list[RegisteredVoter] = []
