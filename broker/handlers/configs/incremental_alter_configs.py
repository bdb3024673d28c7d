"""IncrementalAlterConfigs, key 44, versions 0-1 (KIP-339): single configs are set, removed, appended to, subtracted
from. Follows ConfigAdminManager; what the configs are is in `sluice.broker.configs`.
"""

from collections import Counter
from typing import TYPE_CHECKING

from sluice.broker.controller.configs.resource import BROKER, Change, Operation, Refusal
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis.incremental_alter_configs import (
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from sluice.protocol.errors import ErrorCode

from .authorization import unauthorized

if TYPE_CHECKING:
    from sluice.broker.handlers.services import ConfigServices

API = served("IncrementalAlterConfigs", "0-1", forwarded=True)


def handle(
    ctx: RequestContext, request: IncrementalAlterConfigsRequest, broker: "ConfigServices"
) -> IncrementalAlterConfigsResponse:
    """One answer a resource, each altered as a whole or not at all."""
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    return IncrementalAlterConfigsResponse(
        responses=[
            _answer(ctx, resource, _alter(ctx, broker, resource, times, request.validate_only))
            for resource in request.resources
        ]
    )


def _alter(
    ctx: RequestContext,
    broker: "ConfigServices",
    resource: AlterConfigsResource,
    times: Counter[tuple[int, str]],
    validate_only: bool,
) -> Refusal | None:
    kind, name = resource.resource_type, resource.resource_name
    given = [(c.name, c.value is None and c.config_operation != Operation.DELETE) for c in resource.configs]
    refusal = malformed(times[kind, name], given)
    if refusal is not None:
        return refusal
    changes = {config.name: Change(config.config_operation, config.value) for config in resource.configs}
    configs = broker.configs
    # A broker looks at its own configs before it is asked whether the client may alter them.
    invalid = configs.alter(kind, name, changes, validate_only=True) if kind == BROKER else None
    return (
        invalid
        or unauthorized(ctx, broker, AclOperation.ALTER_CONFIGS, kind, name)
        or configs.alter(kind, name, changes, validate_only=validate_only)
    )


def malformed(times: int, given: list[tuple[str, bool]]) -> Refusal | None:
    """What is wrong with the request itself: how often the resource comes, and of each config (name, lacks a value)."""
    nulls = [name for name, lacks_value in given if lacks_value]
    if times > 1:
        message = "Each resource must appear at most once."
    elif len({name for name, _ in given}) < len(given):
        message = "Error due to duplicate config keys"
    elif nulls:
        message = f"Null value not supported for : {', '.join(nulls)}"
    else:
        return None
    return Refusal(ErrorCode.INVALID_REQUEST, message)


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
