"""Records of ACLs, SCRAM credentials (KIP-900) and delegation tokens (KIP-48)."""

from __future__ import annotations

from typing import ClassVar

from sluice.protocol.types import ZERO_UUID, Versions, bytes_, int8, int32, int64, string, uuid

from .message import MetadataMessage


class AccessControlEntryRecord(MetadataMessage):
    TYPE: ClassVar[int] = 18
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    id: uuid = ZERO_UUID
    resource_type: int8 = 0
    resource_name: string = ""
    pattern_type: int8 = 0
    principal: string = ""
    host: string = ""
    operation: int8 = 0
    permission_type: int8 = 0


class RemoveAccessControlEntryRecord(MetadataMessage):
    TYPE: ClassVar[int] = 19
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    id: uuid = ZERO_UUID


class UserScramCredentialRecord(MetadataMessage):
    TYPE: ClassVar[int] = 11
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    name: string = ""
    mechanism: int8 = 0  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    salt: bytes_ = b""
    stored_key: bytes_ = b""
    server_key: bytes_ = b""
    iterations: int32 = 0


class RemoveUserScramCredentialRecord(MetadataMessage):
    TYPE: ClassVar[int] = 22
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    name: string = ""
    mechanism: int8 = 0


class DelegationTokenRecord(MetadataMessage):
    TYPE: ClassVar[int] = 10
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    owner: string = ""
    requester: string = ""
    renewers: list[string] = []
    issue_timestamp: int64 = 0
    max_timestamp: int64 = 0
    expiration_timestamp: int64 = 0
    token_id: string = ""


class RemoveDelegationTokenRecord(MetadataMessage):
    TYPE: ClassVar[int] = 26
    VERSIONS: ClassVar[Versions] = Versions("0", flexible="0+")

    token_id: string = ""
