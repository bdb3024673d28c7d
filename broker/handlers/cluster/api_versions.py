"""ApiVersions, key 18, versions 0-5: which APIs in which versions this broker serves, made from the registry of
handlers.

v3 says which client asks (KIP-511), v5 which broker it means to reach: another one's answer is REBOOTSTRAP_REQUIRED
(KIP-1242). An unknown version is answered in version 0 with error 35 and the versions of ApiVersions itself, so that a
client of any age can read it. Up to v3 no feature is listed whose lowest level is 0: Java clients up to 3.7 refuse to
read one (KAFKA-17492).
"""

from typing import TYPE_CHECKING

from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.protocol.apis import ApiKey
from sluice.protocol.apis.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from sluice.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from sluice.broker.handlers.services import ClusterServices

API = served("ApiVersions", "0-5")

_LEGAL_SOFTWARE = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.")
_NAMED_SINCE = 3
_FEATURES_SINCE = 3
_LEVEL_0_SINCE = 4
_ANY_NODE = -1
_FEATURES_EPOCH = 0  # they never change


def handle(ctx: RequestContext, request: ApiVersionsRequest, broker: "ClusterServices") -> ApiVersionsResponse:
    """All that is served; INVALID_REQUEST for a software name or version that KIP-511 does not allow."""
    if ctx.version >= _NAMED_SINCE:
        name, version = request.client_software_name, request.client_software_version
        if not (_is_legal(name) and _is_legal(version)):
            ctx.error_code = ErrorCode.INVALID_REQUEST
            return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
        ctx.session.set_client_software(name, version)
    if request.cluster_id not in (None, broker.cluster.cluster_id) or request.node_id not in (
        _ANY_NODE,
        broker.node_id,
    ):
        ctx.error_code = ErrorCode.REBOOTSTRAP_REQUIRED
        return ApiVersionsResponse(error_code=ErrorCode.REBOOTSTRAP_REQUIRED)
    if ctx.version < _FEATURES_SINCE:
        return ApiVersionsResponse(api_keys=broker.api_keys)
    features = broker.features.values()
    return ApiVersionsResponse(
        api_keys=broker.api_keys,
        supported_features=[
            SupportedFeatureKey(name=feature.name, min_version=feature.min_level, max_version=feature.max_level)
            for feature in features
            if feature.min_level > 0 or ctx.version >= _LEVEL_0_SINCE
        ],
        finalized_features_epoch=_FEATURES_EPOCH,
        # By that name: the range of levels, which is one level since Kafka 3.0.
        finalized_features=[
            FinalizedFeatureKey(
                name=feature.name, max_version_level=feature.finalized_level, min_version_level=feature.finalized_level
            )
            for feature in features
        ],
    )


def unsupported_version(ctx: RequestContext, broker: "ClusterServices") -> ApiVersionsResponse:
    """The answer, in version 0, to a version of ApiVersions that is not served."""
    ctx.error_code = ErrorCode.UNSUPPORTED_VERSION
    own = [api for api in broker.api_keys if api.api_key == ApiKey.API_VERSIONS]
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=own)


def _is_legal(text: str) -> bool:
    # Kafka: letters and digits at both ends, these and '-' and '.' between.
    return bool(text) and _LEGAL_SOFTWARE.issuperset(text) and text[0].isalnum() and text[-1].isalnum()
