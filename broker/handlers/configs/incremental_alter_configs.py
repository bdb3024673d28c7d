"""IncrementalAlterConfigs, key 44, versions 0-1 (KIP-339)."""

from functools import partial

from sluice.broker.broker import Broker
from sluice.broker.controller.configs.resource import Change, Operation
from sluice.broker.requests.context import RequestContext
from sluice.broker.requests.served_api import served
from sluice.protocol.apis import incremental_alter_configs as api
from sluice.protocol.apis.alter_configs import AlterConfigsResourceResponse

from .config_alteration import Alteration, alter_resources

API = served("IncrementalAlterConfigs", "0-1", forwarded=True)


def handle(
    ctx: RequestContext, request: api.IncrementalAlterConfigsRequest, broker: Broker
) -> api.IncrementalAlterConfigsResponse:
    responses = alter_resources(ctx, broker, request, _changes, AlterConfigsResourceResponse)
    return api.IncrementalAlterConfigsResponse(responses=responses)


def _changes(ctx: RequestContext, broker: Broker, resource: api.AlterConfigsResource) -> Alteration:
    kind, name, configs = resource.resource_type, resource.resource_name, resource.configs
    changes: dict[str, Change] = ctx.kept_mapping()
    for config in configs:
        changes[config.name] = Change(config.config_operation, config.value)
    nulls = [c.name for c in configs if c.value is None and c.config_operation != Operation.DELETE]
    apply = partial(broker.configs.alter, kind, name, changes, sliced=ctx.sliced)
    return Alteration(kind, name, len(changes) < len(configs), nulls, apply)
