"""ApiVersions (key 18): the first request of a client, for the versions that the broker supports.

v1: throttle time; v3: the client's name and version (KIP-511), features (KIP-584); v4: features from level 0
(KAFKA-17011); v5: the intended cluster and node (KIP-1242).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int16, int32, int64, string


class ApiVersionsRequest(Message):
    client_software_name: Annotated[string, V("3+")] = ""
    client_software_version: Annotated[string, V("3+")] = ""
    cluster_id: Annotated[string | None, V("5+", null="5+")] = None  # the intended cluster, if known
    node_id: Annotated[int32, V("5+")] = -1  # the intended node; -1: unknown


class ApiVersion(Message):
    api_key: int16 = 0
    min_version: int16 = 0
    max_version: int16 = 0


class SupportedFeatureKey(Message):
    name: Annotated[string, V("3+")] = ""
    min_version: Annotated[int16, V("3+")] = 0
    max_version: Annotated[int16, V("3+")] = 0


class FinalizedFeatureKey(Message):
    name: Annotated[string, V("3+")] = ""
    max_version_level: Annotated[int16, V("3+")] = 0
    min_version_level: Annotated[int16, V("3+")] = 0


class ApiVersionsResponse(Message):
    """The finalized features are valid only if their epoch is 0 or more."""

    error_code: Annotated[int16, V(errors="any REBOOTSTRAP_REQUIRED")] = 0
    api_keys: list[ApiVersion] = []
    throttle_time_ms: Annotated[int32, V("1+")] = 0
    supported_features: Annotated[list[SupportedFeatureKey], V("3+", tag=0)] = []
    finalized_features_epoch: Annotated[int64, V("3+", tag=1)] = -1
    finalized_features: Annotated[list[FinalizedFeatureKey], V("3+", tag=2)] = []
    zk_migration_ready: Annotated[boolean, V("3+", tag=3)] = False
