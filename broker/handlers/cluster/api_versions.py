"""ApiVersions, key 18, versions 0-5, from the registry of handlers.

Another broker than the expected one returns REBOOTSTRAP_REQUIRED (KIP-1242). Unknown versions get a v0 response with
UNSUPPORTED_VERSION and the versions of ApiVersions, readable by all clients. Up to v3, features with a minimum level of
0 are omitted, since Java clients up to 3.7 reject them (KAFKA-17492).

Equal requests often get a cached response (exchange/response_cache.py).
"""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

API = served("ApiVersions", "0-5", cached=True)

_LEGAL_SOFTWARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")
_SOFTWARE_SINCE = 3
_FEATURES_SINCE = 3
_LEVEL_0_SINCE = 4
_ANY_NODE = -1


def handle(ctx: RequestContext, request: ApiVersionsRequest, broker: Broker) -> Message:
    if (request.cluster_id is None) != (request.node_id == _ANY_NODE):
        return failed(ctx, request, ErrorCode.INVALID_REQUEST)
    if ctx.version >= _SOFTWARE_SINCE:
        name, version = request.client_software_name, request.client_software_version
        if not (_is_legal(name) and _is_legal(version)):
            return failed(ctx, request, ErrorCode.INVALID_REQUEST)
        ctx.session.set_client_software(name, version)
    if request.cluster_id not in (None, broker.cluster.cluster_id) or request.node_id not in (
        _ANY_NODE,
        broker.node_id,
    ):
        return failed(ctx, request, ErrorCode.REBOOTSTRAP_REQUIRED)
    if ctx.version < _FEATURES_SINCE:
        return ApiVersionsResponse(api_keys=broker.api_keys)
    features = broker.features.by_name.values()
    return ApiVersionsResponse(
        api_keys=broker.api_keys,
        supported_features=[
            SupportedFeatureKey(name=feature.name, min_version=feature.min_level, max_version=feature.max_level)
            for feature in features
            if feature.min_level > 0 or ctx.version >= _LEVEL_0_SINCE
        ],
        finalized_features_epoch=broker.features.epoch,
        # The fields are a range of levels; since Kafka 3.0 it is a single level.
        finalized_features=[
            FinalizedFeatureKey(
                name=feature.name, max_version_level=feature.finalized_level, min_version_level=feature.finalized_level
            )
            for feature in features
            if feature.finalized_level
        ],
    )


def unsupported_version(ctx: RequestContext, broker: Broker) -> ApiVersionsResponse:
    ctx.error_code = ErrorCode.UNSUPPORTED_VERSION
    own = [api for api in broker.api_keys if api.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


def _is_legal(text: str) -> bool:
    # As in Kafka: letters and digits at both ends, also '-' and '.' in between.
    return bool(text) and _LEGAL_SOFTWARE.issuperset(text) and text[0].isalnum() and text[-1].isalnum()
