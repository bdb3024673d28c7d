"""Admin calls for configs.

Requests about one broker go to that broker, others to any broker.
"""

from collections.abc import Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from sluice.client.errors import KafkaException
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from sluice.protocol.apis.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, NodeProvider, Outcomes, RequestSource, broker, least_loaded, outcome


class ResourceType(IntEnum):
    """The type of a config resource (Kafka's ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A config resource. The name of a broker is its id; an empty name means all brokers."""

    type: ResourceType
    name: str


class AlterOperation(IntEnum):
    """Kafka's AlterConfigOp.OpType; the last two apply to lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    name: str
    value: str | None
    operation: AlterOperation = AlterOperation.SET


# No error code is retried, only lost connections and timeouts.
_NEVER: Collection[int] = ()


@checks_arguments
class ConfigAdmin:
    _calls: AdminCalls

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: Milliseconds | None = None,
    ) -> Outcomes[ConfigResource, list[DescribeConfigsResourceResult]]:
        """Return all configs of resources, with the sources of their values."""

        def build(wanted: list[ConfigResource]) -> RequestSource:
            message = DescribeConfigsRequest(
                resources=[
                    DescribeConfigsResource(
                        resource_type=resource.type, resource_name=resource.name, configuration_keys=None
                    )
                    for resource in wanted
                ],
                include_synonyms=include_synonyms,
                include_documentation=include_documentation,
            )
            return request_of(message)

        return await self._calls.call_by_key(
            resources,
            _find_nodes,
            build,
            DescribeConfigsResponse,
            lambda response: {
                ConfigResource(ResourceType(result.resource_type), result.resource_name): outcome(
                    result, result.configs
                )
                for result in response.results
            },
            timeout_ms,
            _NEVER,
        )

    async def incremental_alter_configs(
        self,
        alterations: Mapping[ConfigResource, Iterable[Alteration]],
        *,
        validate_only: bool = False,
        timeout_ms: Milliseconds | None = None,
    ) -> Outcomes[ConfigResource, None]:
        """Change the given configs and no others (KIP-339)."""
        configs = {
            resource: [
                AlterableConfig(name=one.name, config_operation=one.operation, value=one.value) for one in changes
            ]
            for resource, changes in alterations.items()
        }

        def build(wanted: list[ConfigResource]) -> RequestSource:
            resources = [
                AlterConfigsResource(resource_type=one.type, resource_name=one.name, configs=configs[one])
                for one in wanted
            ]
            return request_of(IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only))

        return await self._calls.call_by_key(
            configs,
            _find_nodes,
            build,
            IncrementalAlterConfigsResponse,
            lambda response: {
                ConfigResource(ResourceType(result.resource_type), result.resource_name): outcome(result, None)
                for result in response.responses
            },
            timeout_ms,
            _NEVER,
        )


async def _find_nodes(
    _calls: AdminCalls, resources: Collection[ConfigResource], _deadline_ms: float
) -> Mapping[ConfigResource, NodeProvider | KafkaException]:
    of_brokers = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
    return {
        resource: broker(int(resource.name)) if resource.type in of_brokers and resource.name else least_loaded
        for resource in resources
    }
