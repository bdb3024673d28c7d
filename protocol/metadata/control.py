"""Records of control batches in a metadata log or snapshot: what the quorum tells itself (KIP-595, KIP-630, KIP-853).

They are a control batch's records: the key is a version and a type of two bytes each, the value one of these messages
in the version that its own first field says.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from msgspec import field

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, Versions, int16, int32, int64, string, uint16, uuid

from .message import MetadataMessage


class Voter(Message):
    """One voter of the quorum, by id and log directory."""

    voter_id: int32 = 0
    voter_directory_id: Annotated[uuid, V("1+")] = ZERO_UUID


class LeaderChangeMessage(MetadataMessage):
    """An epoch of the quorum began, with this leader."""

    TYPE: ClassVar[int] = 2
    VERSIONS: ClassVar[Versions] = Versions("0-1", flexible="0+")

    version: int16 = 0
    leader_id: int32 = 0
    voters: list[Voter] = []
    granting_voters: list[Voter] = []


class SnapshotHeaderRecord(MetadataMessage):
    """The first record of a snapshot."""

    TYPE: ClassVar[int] = 3
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    version: int16 = 0
    last_contained_log_timestamp: int64 = 0  # ms; of the last record that the snapshot stands for


class SnapshotFooterRecord(MetadataMessage):
    """The last record of a snapshot: without it the file is not whole."""

    TYPE: ClassVar[int] = 4
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    version: int16 = 0


class KRaftVersionRecord(MetadataMessage):
    """The quorum's own protocol: 1 is that of voters which can be added and removed."""

    TYPE: ClassVar[int] = 5
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    version: int16 = 0
    kraft_version: int16 = 0


class VoterEndpoint(Message):
    """Where a voter is reached."""

    name: string = ""
    host: string = ""
    port: uint16 = 0


class KRaftVersionFeature(Message):
    """The versions of the quorum's protocol that a voter knows."""

    min_supported_version: int16 = 0
    max_supported_version: int16 = 0


class RegisteredVoter(Message):
    """One voter, whole; in Kafka this struct is Voter too."""

    voter_id: int32 = 0
    voter_directory_id: uuid = ZERO_UUID
    endpoints: list[VoterEndpoint] = []
    kraft_version_feature: KRaftVersionFeature = field(default_factory=KRaftVersionFeature)


class VotersRecord(MetadataMessage):
    """All voters of the quorum."""

    TYPE: ClassVar[int] = 6
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    version: int16 = 0
    voters: list[RegisteredVoter] = []
