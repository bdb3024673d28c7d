"""The common path of AlterConfigs and IncrementalAlterConfigs. Follows ConfigAdminManager."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from sluice.broker.broker import Broker
from sluice.broker.controller.configs.resource import BROKER, BROKER_LOGGER, ApiError
from sluice.broker.requests.context import RequestContext
from sluice.broker.security.acl.acl import AclOperation
from sluice.protocol.apis.alter_configs import AlterConfigsRequest
from sluice.protocol.apis.incremental_alter_configs import IncrementalAlterConfigsRequest
from sluice.protocol.errors import ErrorCode

from .authorization import unauthorized

_Response = TypeVar("_Response")
_NO_ERROR = ApiError(ErrorCode.NONE, None)


class Alteration(NamedTuple):
    kind: int
    name: str
    repeats_key: bool
    nulls: Sequence[str]
    apply: Callable[..., ApiError | None]  # with the keyword `validate_only`


def alter_resources(
    ctx: RequestContext,
    broker: Broker,
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    alteration_of: Callable[..., Alteration],
    response_class: Callable[..., _Response],
) -> list[_Response]:
    alterations = ctx.array(alteration_of(ctx, broker, resource) for resource in request.resources)
    times = ctx.counts((alteration.kind, alteration.name) for alteration in alterations)
    responses = []
    for alteration in alterations:
        kind, name = alteration.kind, alteration.name
        code, message = _alter(ctx, broker, alteration, times[kind, name], request.validate_only) or _NO_ERROR
        ctx.error_code = ctx.error_code or code
        response = response_class(error_code=code, error_message=message, resource_type=kind, resource_name=name)
        responses.append(response)
    return responses


def _alter(
    ctx: RequestContext, broker: Broker, alteration: Alteration, times: int, validate_only: bool
) -> ApiError | None:
    return (
        _malformed(alteration, times)
        or _unauthorized(ctx, broker, alteration)
        or alteration.apply(validate_only=validate_only)
    )


def _unauthorized(ctx: RequestContext, broker: Broker, alteration: Alteration) -> ApiError | None:
    error = unauthorized(ctx, broker, AclOperation.ALTER_CONFIGS, alteration.kind, alteration.name)
    if error is not None and alteration.kind in (BROKER, BROKER_LOGGER):
        return ApiError(error.code, None)  # as in Kafka, where the broker itself authorizes these
    return error


def _malformed(alteration: Alteration, times: int) -> ApiError | None:
    if times > 1:
        message = "Each resource must appear at most once."
    elif alteration.repeats_key:
        message = "Error due to duplicate config keys"
    elif alteration.nulls:
        message = f"Null value not supported for : {', '.join(alteration.nulls)}"
    else:
        return None
    return ApiError(ErrorCode.INVALID_REQUEST, message)
