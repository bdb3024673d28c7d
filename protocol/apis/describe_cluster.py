"""DescribeCluster (key 60): brokers, controller and cluster id, for admin clients (KIP-700).

v1: controllers (KIP-919); v2: fenced brokers (KIP-1073).
"""

from __future__ import annotations

from typing import Annotated

from sluice.protocol.message import Message
from sluice.protocol.types import V, boolean, int8, int16, int32, string


class DescribeClusterRequest(Message):
    include_cluster_authorized_operations: boolean = False
    endpoint_type: Annotated[int8, V("1+")] = 1  # 1: brokers, 2: controllers
    include_fenced_brokers: Annotated[boolean, V("2+")] = False


class DescribeClusterBroker(Message):
    broker_id: int32 = 0
    host: Annotated[string, V(address="broker_id")] = ""
    port: Annotated[int32, V(address="broker_id")] = 0
    rack: Annotated[string | None, V("0+", null="0+")] = None
    is_fenced: Annotated[boolean, V("2+")] = False


class DescribeClusterResponse(Message):
    throttle_time_ms: int32 = 0
    error_code: Annotated[
        int16, V(errors="any CLUSTER_AUTHORIZATION_FAILED UNSUPPORTED_ENDPOINT_TYPE MISMATCHED_ENDPOINT_TYPE")
    ] = 0
    error_message: Annotated[string | None, V("0+", null="0+")] = None
    endpoint_type: Annotated[int8, V("1+")] = 1  # 1: brokers, 2: controllers
    cluster_id: string = ""
    controller_id: int32 = -1
    brokers: list[DescribeClusterBroker] = []
    cluster_authorized_operations: int32 = -0x8000_0000
