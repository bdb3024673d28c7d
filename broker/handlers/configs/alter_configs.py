"""AlterConfigs, key 33, versions 0-2 (KIP-133): all configs of a resource are replaced; what is left out is removed.

Follows ConfigAdminManager; what the configs are is in `sluice.broker.configs`. Deprecated by IncrementalAlterConfigs.
"""

from collections import Counter
from typing import TYPE_CHECKING

from sluice.broker.controller.configs.resource import BROKER, Refusal
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from sluice.protocol.errors import ErrorCode

from .authorization import unauthorized
from .incremental_alter_configs import malformed

if TYPE_CHECKING:
    from sluice.broker.handlers.services import ConfigServices

API = served("AlterConfigs", "0-2", forwarded=True)


def handle(ctx: RequestContext, request: AlterConfigsRequest, broker: "ConfigServices") -> AlterConfigsResponse:
    """One answer a resource, each altered as a whole or not at all."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    return AlterConfigsResponse(
        responses=[
            _answer(ctx, resource, _replace(ctx, broker, resource, times, request.validate_only))
            for resource in request.resources
        ]
    )


def _replace(
    ctx: RequestContext,
    broker: "ConfigServices",
    resource: AlterConfigsResource,
    times: Counter[tuple[int, str]],
    validate_only: bool,
) -> Refusal | None:
    kind, name = resource.resource_type, resource.resource_name
    refusal = malformed(times[kind, name], [(config.name, config.value is None) for config in resource.configs])
    if refusal is not None:
        return refusal
    own = {config.name: config.value for config in resource.configs if config.value is not None}
    configs = broker.configs
    # A broker looks at its own configs before it is asked whether the client may alter them.
    invalid = configs.replace(kind, name, own, validate_only=True) if kind == BROKER else None
    return (
        invalid
        or unauthorized(ctx, broker, AclOperation.ALTER_CONFIGS, kind, name)
        or configs.replace(kind, name, own, validate_only=validate_only)
    )


def _answer(
    ctx: RequestContext, resource: AlterConfigsResource, refusal: Refusal | None
) -> AlterConfigsResourceResponse:
    code, message = refusal or (ErrorCode.NONE, None)
    ctx.error_code = ctx.error_code or code
    return AlterConfigsResourceResponse(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
