"""AlterConfigs, key 33, versions 0-2 (KIP-133)."""

from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.protocol.apis import alter_configs as api

from .config_alteration import Alteration, alter_resources

API = served("AlterConfigs", "0-2", forwarded=True)


def handle(ctx: RequestContext, request: api.AlterConfigsRequest, broker: Broker) -> api.AlterConfigsResponse:
    responses = alter_resources(ctx, broker, request, _replacement, api.AlterConfigsResourceResponse)
    return api.AlterConfigsResponse(responses=responses)


def _replacement(ctx: RequestContext, broker: Broker, resource: api.AlterConfigsResource) -> Alteration:
    kind, name, configs = resource.resource_type, resource.resource_name, resource.configs
    own: dict[str, str] = ctx.kept_mapping()
    for config in configs:
        if config.value is not None:
            own[config.name] = config.value
    nulls = [config.name for config in configs if config.value is None]
    repeats_key = len(own) + len({*nulls} - own.keys()) < len(configs)
    return Alteration(kind, name, repeats_key, nulls, partial(broker.configs.replace, kind, name, own))
