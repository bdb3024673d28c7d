"""DescribeConfigs, key 32, versions 0-4. Follows Kafka's ConfigHelper."""

from sluice.broker.broker import Broker
from sluice.broker.controller.configs.broker_configs import is_alterable
from sluice.broker.controller.configs.resource import BROKER, BROKER_LOGGER, CONFIG_SOURCES, ApiError
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.failed import failed
from sluice.broker.requests.served_api import served
from sluice.broker.security.acl.acl import AclOperation
from sluice.config.setting import DEFAULT_CONFIG, UNKNOWN_TYPE, Setting
from sluice.protocol.apis import describe_configs as api
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message

from .authorization import unauthorized

API = served("DescribeConfigs", "0-4")

# ConfigSource and ConfigType of Kafka's DescribeConfigsResponse.
_DYNAMIC_BROKER_LOGGER_CONFIG = 6
_TYPES = (UNKNOWN_TYPE, "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
CONFIG_TYPES = {name: number for number, name in enumerate(_TYPES)}


def handle(ctx: RequestContext, request: api.DescribeConfigsRequest, broker: Broker) -> Message:
    if not all(broker.configs.is_served(resource.resource_type) for resource in request.resources):
        return failed(ctx, request, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST.message)
    authorized: list[api.DescribeConfigsResult] = ctx.array()
    denied: list[api.DescribeConfigsResult] = ctx.array()  # after the others, as in Kafka
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        if (error := unauthorized(ctx, broker, AclOperation.DESCRIBE_CONFIGS, kind, name)) is not None:
            denied.append(_error_result(ctx, resource, error))
        else:
            authorized.append(_describe(ctx, broker, request, resource))
    return api.DescribeConfigsResponse(results=[*authorized, *denied])


def _describe(
    ctx: RequestContext, broker: Broker, request: api.DescribeConfigsRequest, resource: api.DescribeConfigsResource
) -> api.DescribeConfigsResult:
    ctx.pause()  # not only after several resources, because a topic takes a millisecond
    configs, kind, name = broker.configs, resource.resource_type, resource.resource_name
    found: list[api.DescribeConfigsResourceResult]
    if kind == BROKER_LOGGER:
        levels = configs.loggers.describe(name)
        if isinstance(levels, ApiError):
            return _error_result(ctx, resource, levels)
        found = [_level(logger, level) for logger, level in levels.items()]
    else:
        settings = configs.stores[kind].describe(name)
        if isinstance(settings, ApiError):
            return _error_result(ctx, resource, settings)
        found = [_setting(request, kind, setting) for setting in settings]
    keys = frozenset(resource.configuration_keys or ())
    return api.DescribeConfigsResult(
        resource_type=kind, resource_name=name, configs=[one for one in found if not keys or one.name in keys]
    )


def _level(logger: str, level: str) -> api.DescribeConfigsResourceResult:
    return api.DescribeConfigsResourceResult(name=logger, value=level, config_source=_DYNAMIC_BROKER_LOGGER_CONFIG)


def _setting(request: api.DescribeConfigsRequest, kind: int, setting: Setting) -> api.DescribeConfigsResourceResult:
    row, hidden = setting.property, setting.sensitive
    result = api.DescribeConfigsResourceResult(
        name=row.name,
        value=None if hidden else setting.value,
        read_only=kind == BROKER and not is_alterable(row.name),
        is_default=setting.source == DEFAULT_CONFIG,
        config_source=CONFIG_SOURCES[setting.source],
        is_sensitive=hidden,
        config_type=CONFIG_TYPES[row.kind.type],
        documentation=(row.doc or None) if request.include_documentation else None,
    )
    if request.include_synonyms:
        result.synonyms = [
            api.DescribeConfigsSynonym(
                name=one.name, value=None if hidden else one.value, source=CONFIG_SOURCES[one.source]
            )
            for one in setting.synonyms
        ]
    return result


def _error_result(
    ctx: RequestContext, resource: api.DescribeConfigsResource, error: ApiError
) -> api.DescribeConfigsResult:
    code, message = error
    ctx.error_code = ctx.error_code or code
    return api.DescribeConfigsResult(
        error_code=code,
        error_message=message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
