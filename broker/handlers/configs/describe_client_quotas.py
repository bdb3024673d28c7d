"""DescribeClientQuotas, key 48, versions 0-1 (KIP-546).

Follows ClientQuotasImage.describe. As in Kafka, quotas in broker properties (KIP-13) are not returned.
"""

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis import describe_client_quotas as api
from sluice.protocol.apis.alter_client_quotas import EntityData
from sluice.protocol.errors import ErrorCode
from sluice.quotas.client_quotas import IP, TYPES, Entity

API = served("DescribeClientQuotas", "0-1")

_EXACT, _DEFAULT, _SPECIFIED = 0, 1, 2
_MATCH_TYPES = {_EXACT: "MATCH_TYPE_EXACT", _DEFAULT: "MATCH_TYPE_DEFAULT", _SPECIFIED: "MATCH_TYPE_SPECIFIED"}


def handle(
    ctx: RequestContext, request: api.DescribeClientQuotasRequest, broker: Broker
) -> api.DescribeClientQuotasResponse:
    """Return the matching entities; without components every one, or with `strict` none."""
    if not broker.auth.authorize_cluster(ctx, AclOperation.DESCRIBE_CONFIGS):
        return _error_response(ctx, ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None)
    seen_types: set[str] = set()
    for component in request.components:
        code, problem = _component_error(component, seen_types)
        if problem is not None:
            return _error_response(ctx, code, problem)
        seen_types.add(component.entity_type)
    if IP in seen_types and len(seen_types) > 1:
        alone = "IP filter component should not be used with user or clientId filter component."
        return _error_response(ctx, ErrorCode.INVALID_REQUEST, f"Invalid entity filter component combination. {alone}")
    specified = [one.entity_type for one in request.components if one.match_type == _SPECIFIED]
    exact = {one.entity_type: one.match for one in request.components if one.match_type != _SPECIFIED}
    found = broker.cluster.client_quotas.matching(exact, specified, strict=request.strict)
    return api.DescribeClientQuotasResponse(entries=[_entry(entity, quotas) for entity, quotas in found])


def _component_error(component: api.ComponentData, seen_types: set[str]) -> tuple[ErrorCode, str | None]:
    type_, match_type = component.entity_type, component.match_type
    if not type_:
        return ErrorCode.INVALID_REQUEST, "Invalid empty entity type."
    if type_ in seen_types:
        return ErrorCode.INVALID_REQUEST, f"Entity type {type_} cannot appear more than once in the filter."
    if type_ not in TYPES:
        return ErrorCode.UNSUPPORTED_VERSION, f"Unsupported entity type {type_}"
    if match_type not in _MATCH_TYPES:
        return ErrorCode.INVALID_REQUEST, f"Unknown match type {match_type}"
    if match_type == _EXACT and component.match is None:
        return ErrorCode.INVALID_REQUEST, "Request specified MATCH_TYPE_EXACT, but set match string to null."
    if match_type != _EXACT and component.match is not None:
        name = _MATCH_TYPES[match_type]
        return ErrorCode.INVALID_REQUEST, f"Request specified {name}, but also specified a match string."
    return ErrorCode.NONE, None


def _entry(entity: Entity, quotas: dict[str, float]) -> api.EntryData:
    return api.EntryData(
        entity=[EntityData(entity_type=type_, entity_name=name) for type_, name in entity.items()],
        values=[api.ValueData(key=key, value=value) for key, value in quotas.items()],
    )


def _error_response(ctx: RequestContext, code: ErrorCode, message: str | None) -> api.DescribeClientQuotasResponse:
    ctx.error_code = code
    return api.DescribeClientQuotasResponse(error_code=code, error_message=message, entries=None)
