"""Admin calls for configs and log directories.

Requests about one broker go to that broker, others to any broker.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import IntEnum
from functools import partial
from typing import NamedTuple, TypeVar

from sluice.client.errors import KafkaException
from sluice.client.metadata.cluster import TopicPartition, by_topic
from sluice.client.network.in_flight import request_of
from sluice.protocol.apis import alter_configs, incremental_alter_configs
from sluice.protocol.apis.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from sluice.protocol.apis.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from sluice.protocol.apis.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
)
from sluice.protocol.apis.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from sluice.protocol.apis.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from sluice.protocol.apis.list_config_resources import ListConfigResourcesRequest, ListConfigResourcesResponse
from sluice.protocol.message import Message
from sluice.text.arguments import Milliseconds, checks_arguments

from .calls import AdminCalls, NodeProvider, Outcomes, RequestSource, broker, least_loaded, outcome, raise_error

C = TypeVar("C")


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
            lambda response, _: {
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
        return await self._alter(
            {
                resource: [
                    incremental_alter_configs.AlterableConfig(
                        name=change.name, config_operation=change.operation, value=change.value
                    )
                    for change in changes
                ]
                for resource, changes in alterations.items()
            },
            incremental_alter_configs.AlterConfigsResource,
            partial(IncrementalAlterConfigsRequest, validate_only=validate_only),
            IncrementalAlterConfigsResponse,
            timeout_ms,
        )

    async def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str]],
        *,
        validate_only: bool = False,
        timeout_ms: Milliseconds | None = None,
    ) -> Outcomes[ConfigResource, None]:
        """Replace all configs of resources, for brokers before 2.3."""
        return await self._alter(
            {
                resource: [alter_configs.AlterableConfig(name=name, value=value) for name, value in values.items()]
                for resource, values in configs.items()
            },
            alter_configs.AlterConfigsResource,
            partial(AlterConfigsRequest, validate_only=validate_only),
            AlterConfigsResponse,
            timeout_ms,
        )

    async def _alter(
        self,
        configs: Mapping[ConfigResource, list[C]],
        resource_class: Callable[..., object],
        request: Callable[..., Message],
        response: type[IncrementalAlterConfigsResponse | AlterConfigsResponse],
        timeout_ms: int | None,
    ) -> Outcomes[ConfigResource, None]:
        def build(wanted: list[ConfigResource]) -> RequestSource:
            return request_of(
                request(
                    resources=[
                        resource_class(resource_type=one.type, resource_name=one.name, configs=configs[one])
                        for one in wanted
                    ]
                )
            )

        return await self._calls.call_by_key(
            configs,
            _find_nodes,
            build,
            response,
            lambda response, _: {
                ConfigResource(ResourceType(result.resource_type), result.resource_name): outcome(result, None)
                for result in response.responses
            },
            timeout_ms,
            _NEVER,
        )

    async def list_config_resources(
        self, types: Iterable[ResourceType] = (), *, timeout_ms: Milliseconds | None = None
    ) -> list[ConfigResource]:
        """Return the resources of these types, or all types, that have configs."""
        wanted = [int(type_) for type_ in types]
        # Version 0 lists client metrics only.
        request = request_of(ListConfigResourcesRequest(resource_types=wanted), oldest=1)
        response = await self._calls.call(least_loaded, request, ListConfigResourcesResponse, timeout_ms, raise_error)
        return [
            ConfigResource(ResourceType(found.resource_type), found.resource_name)
            for found in response.config_resources
        ]

    async def describe_log_dirs(
        self, broker_ids: Iterable[int], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[int, list[DescribeLogDirsResult]]:
        """Return the log directories of each broker, with their replicas."""
        return await self._calls.call_by_key(
            broker_ids,
            _find_brokers,
            lambda _: request_of(DescribeLogDirsRequest(topics=None)),
            DescribeLogDirsResponse,
            lambda response, ids: dict.fromkeys(ids, outcome(response, response.results)),
            timeout_ms,
            _NEVER,
        )

    async def alter_replica_log_dirs(
        self, folders: Mapping[tuple[int, TopicPartition], str], *, timeout_ms: Milliseconds | None = None
    ) -> Outcomes[tuple[int, TopicPartition], None]:
        """Move replicas, by broker id and partition, to other log directories."""

        def build(replicas: list[tuple[int, TopicPartition]]) -> RequestSource:
            by_folder: dict[str, list[TopicPartition]] = {}
            for replica in replicas:
                by_folder.setdefault(folders[replica], []).append(replica[1])
            return request_of(
                AlterReplicaLogDirsRequest(
                    dirs=[
                        AlterReplicaLogDir(
                            path=path,
                            topics=[
                                AlterReplicaLogDirTopic(name=name, partitions=indexes)
                                for name, indexes in by_topic(partitions).items()
                            ],
                        )
                        for path, partitions in by_folder.items()
                    ]
                )
            )

        return await self._calls.call_by_key(
            folders,
            _find_brokers_of_replicas,
            build,
            AlterReplicaLogDirsResponse,
            lambda response, replicas: {
                (replicas[0][0], TopicPartition(topic.topic_name, partition.partition_index)): outcome(partition, None)
                for topic in response.results
                for partition in topic.partitions
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


async def _find_brokers(
    _calls: AdminCalls, broker_ids: Collection[int], _deadline_ms: float
) -> Mapping[int, NodeProvider | KafkaException]:
    return {broker_id: broker(broker_id) for broker_id in broker_ids}


async def _find_brokers_of_replicas(
    _calls: AdminCalls, replicas: Collection[tuple[int, TopicPartition]], _deadline_ms: float
) -> Mapping[tuple[int, TopicPartition], NodeProvider | KafkaException]:
    return {replica: broker(replica[0]) for replica in replicas}
