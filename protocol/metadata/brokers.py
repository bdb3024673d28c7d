"""Records of brokers (KIP-631) and controllers (KIP-919)."""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import ZERO_UUID, V, boolean, int8, int16, int32, int64, string, uint16, uuid

from .message import MetadataMessage


class Endpoint(Message):
    name: string = ""
    host: string = ""
    port: uint16 = 0
    security_protocol: int16 = 0  # Kafka's SecurityProtocol: 0 PLAINTEXT, 1 SSL, 2 SASL_PLAINTEXT, 3 SASL_SSL


class SupportedFeature(Message):
    name: string = ""
    min_supported_version: int16 = 0
    max_supported_version: int16 = 0


class RegisterBrokerRecord(MetadataMessage):
    broker_id: int32 = 0
    is_migrating_zk_broker: Annotated[boolean, V("2+")] = False
    incarnation_id: uuid = ZERO_UUID
    broker_epoch: int64 = 0
    end_points: list[Endpoint] = []
    features: list[SupportedFeature] = []
    rack: Annotated[string | None, V("0+", null="0+")] = ""
    fenced: boolean = True
    in_controlled_shutdown: Annotated[boolean, V("1+")] = False
    log_dirs: Annotated[list[uuid], V("3+", tag=0)] = []
    cordoned_log_dirs: Annotated[list[uuid] | None, V("4+", null="4+", tag=1)] = None


class UnregisterBrokerRecord(MetadataMessage):
    broker_id: int32 = 0
    broker_epoch: int64 = 0


class FenceBrokerRecord(MetadataMessage):
    """A broker is fenced; only before metadata.version 3.3-IV3, which has BrokerRegistrationChangeRecord."""

    id: int32 = 0
    epoch: int64 = 0


class UnfenceBrokerRecord(MetadataMessage):
    id: int32 = 0
    epoch: int64 = 0


class BrokerRegistrationChangeRecord(MetadataMessage):
    broker_id: int32 = 0
    broker_epoch: int64 = 0
    fenced: Annotated[int8, V("0+", tag=0)] = 0  # -1: unfenced, 1: fenced
    in_controlled_shutdown: Annotated[int8, V("1+", tag=1)] = 0  # 1: started
    log_dirs: Annotated[list[uuid], V("2+", tag=2)] = []
    cordoned_log_dirs: Annotated[list[uuid] | None, V("3+", null="3+", tag=3)] = None


class RegisterControllerRecord(MetadataMessage):
    controller_id: int32 = 0
    incarnation_id: uuid = ZERO_UUID
    zk_migration_ready: boolean = False
    end_points: list[Endpoint] = []
    features: list[SupportedFeature] = []


class UnregisterControllerRecord(MetadataMessage):
    controller_id: int32 = 0
