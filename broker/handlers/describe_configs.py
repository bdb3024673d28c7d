"""DescribeConfigs, key 32, versions 0-4: the settings of the broker and of topics, from the tables that define them.

v1 says where a value comes from and what else it could have been (KIP-226), v3 its type and what it is for (KIP-569).
Follows Kafka's ConfigHelper.
"""

from sluice.broker.cluster import invalid_topic_name
from sluice.broker.context import RequestContext
from sluice.config import DEFAULT_CONFIG, DYNAMIC_TOPIC_CONFIG, STATIC_BROKER_CONFIG, Setting
from sluice.protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from sluice.protocol.errors import ErrorCode

# ConfigResource.Type and DescribeConfigsResponse.ConfigSource, ConfigType of Kafka.
TOPIC, BROKER = 2, 4
CONFIG_SOURCES = {DYNAMIC_TOPIC_CONFIG: 1, STATIC_BROKER_CONFIG: 4, DEFAULT_CONFIG: 5}
CONFIG_TYPES = {
    "BOOLEAN": 1,
    "STRING": 2,
    "INT": 3,
    "SHORT": 4,
    "LONG": 5,
    "DOUBLE": 6,
    "LIST": 7,
    "CLASS": 8,
    "PASSWORD": 9,
}


def handle(ctx: RequestContext, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """One answer for each resource."""
    return DescribeConfigsResponse(results=[_describe(ctx, request, resource) for resource in request.resources])


def _describe(
    ctx: RequestContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    cluster = ctx.broker.cluster
    if resource.resource_type == TOPIC:
        if (problem := invalid_topic_name(resource.resource_name)) is not None:
            return _refused(ctx, resource, ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
        topic = cluster.topics.get(resource.resource_name)
        if topic is None:
            return _refused(ctx, resource, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None)
        return _found(request, resource, topic.config.entries())
    if resource.resource_type != BROKER:
        message = (
            f"Unsupported resource type: {resource.resource_type}; accepted are {TOPIC} (topic) and {BROKER} (broker)"
        )
        return _refused(ctx, resource, ErrorCode.INVALID_REQUEST, message)
    if resource.resource_name == "":
        return _found(request, resource, [])  # the cluster-wide dynamic defaults: there are none
    if resource.resource_name != str(cluster.node_id):
        message = (
            f"Unexpected broker id, expected {cluster.node_id} or empty string, but received {resource.resource_name}"
        )
        return _refused(ctx, resource, ErrorCode.INVALID_REQUEST, message)
    return _found(request, resource, ctx.broker.config.entries())


def _found(
    request: DescribeConfigsRequest, resource: DescribeConfigsResource, settings: list[Setting]
) -> DescribeConfigsResult:
    keys = resource.configuration_keys  # null or empty: all
    return DescribeConfigsResult(
        error_message=None,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=[_setting(request, resource, one) for one in settings if not keys or one.property.name in keys],
    )


def _setting(
    request: DescribeConfigsRequest, resource: DescribeConfigsResource, setting: Setting
) -> DescribeConfigsResourceResult:
    row, source = setting.property, CONFIG_SOURCES[setting.source]
    value = None if setting.sensitive else setting.value
    result = DescribeConfigsResourceResult(
        name=row.name,
        value=value,
        read_only=resource.resource_type == BROKER,  # nothing of the broker can be altered while it runs
        is_default=setting.source == DEFAULT_CONFIG,
        config_source=source,
        is_sensitive=setting.sensitive,
        config_type=CONFIG_TYPES[row.kind.type],
        documentation=row.doc if request.include_documentation else None,
    )
    if request.include_synonyms:
        result.synonyms = [DescribeConfigsSynonym(name=row.name, value=value, source=source)]
    return result


def _refused(
    ctx: RequestContext, resource: DescribeConfigsResource, code: ErrorCode, message: str | None
) -> DescribeConfigsResult:
    ctx.error_code = ctx.error_code or code
    return DescribeConfigsResult(
        error_code=code,
        error_message=message or code.message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
