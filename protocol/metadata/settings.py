"""Records of dynamic settings: configs, client quotas (KIP-546), feature levels (KIP-584)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, float64, int8, int16, string

from .message import MetadataMessage


class ConfigRecord(MetadataMessage):
    resource_type: int8 = 0  # as in DescribeConfigs: 2 topic, 4 broker, 16 client metrics, 32 group
    resource_name: string = ""
    name: string = ""
    value: Annotated[string | None, V("0+", null="0+")] = ""


class EntityData(Message):
    entity_type: string = ""  # `user`, `client-id` or `ip`
    entity_name: Annotated[string | None, V("0+", null="0+")] = ""


class ClientQuotaRecord(MetadataMessage):
    entity: list[EntityData] = []
    key: string = ""
    value: float64 = 0.0
    remove: boolean = False


class FeatureLevelRecord(MetadataMessage):
    """The level of a feature in the cluster. That of metadata.version decides which records may follow."""

    name: string = ""
    feature_level: int16 = 0  # 0: disabled
