"""UpdateFeatures (key 57): changes finalized features (KIP-584).

v1: upgrade types, validation only (KIP-778); v2: no results per feature.
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int8, int16, int32, string


class FeatureUpdateKey(Message):
    feature: Annotated[string, V(map_key=True)] = ""
    max_version_level: int16 = 0
    allow_downgrade: Annotated[boolean, V("0")] = False
    upgrade_type: Annotated[int8, V("1+")] = 1


class UpdateFeaturesRequest(Message):
    timeout_ms: int32 = 60000
    feature_updates: list[FeatureUpdateKey] = []
    validate_only: Annotated[boolean, V("1+")] = False


class UpdatableFeatureResult(Message):
    feature: Annotated[string, V(map_key=True)] = ""
    error_code: Annotated[int16, V(errors="FEATURE_UPDATE_FAILED")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""


class UpdateFeaturesResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[int16, V(errors="any controller INVALID_UPDATE_VERSION")] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = ""
    results: Annotated[list[UpdatableFeatureResult], V("0-1")] = []
