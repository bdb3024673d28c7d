"""Records of ACLs, SCRAM credentials (KIP-900) and delegation tokens (KIP-48)."""

from __future__ import annotations

from sluice.protocol.types import ZERO_UUID, bytes_, int8, int32, int64, string, uuid

from .message import MetadataMessage


class AccessControlEntryRecord(MetadataMessage):
    id: uuid = ZERO_UUID
    resource_type: int8 = 0
    resource_name: string = ""
    pattern_type: int8 = 0
    principal: string = ""
    host: string = ""
    operation: int8 = 0
    permission_type: int8 = 0


class RemoveAccessControlEntryRecord(MetadataMessage):
    id: uuid = ZERO_UUID


class UserScramCredentialRecord(MetadataMessage):
    name: string = ""
    mechanism: int8 = 0  # 1 SCRAM-SHA-256, 2 SCRAM-SHA-512
    salt: bytes_ = b""
    stored_key: bytes_ = b""
    server_key: bytes_ = b""
    iterations: int32 = 0


class RemoveUserScramCredentialRecord(MetadataMessage):
    name: string = ""
    mechanism: int8 = 0


class DelegationTokenRecord(MetadataMessage):
    owner: string = ""
    requester: string = ""
    renewers: list[string] = []
    issue_timestamp: int64 = 0
    max_timestamp: int64 = 0
    expiration_timestamp: int64 = 0
    token_id: string = ""


class RemoveDelegationTokenRecord(MetadataMessage):
    token_id: string = ""
