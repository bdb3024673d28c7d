"""Configs of topics, brokers and groups, and the folders of logs, as an admin client reads and changes them.

What concerns a broker by itself (its configs, its loggers, its folders) is asked of that broker, all else of any.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from sluice.client.errors import KafkaException, raise_for
from sluice.client.metadata.cluster import TopicPartition
from sluice.client.network.in_flight import Request, request_of
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

from .calls import AdminCalls, NodeProvider, Outcomes, broker, least_loaded, outcome_of
from .partitions import by_topic


class ResourceType(IntEnum):
    """What can have configs (Kafka's ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A thing with configs. A broker is named by its id; the empty name stands for all brokers."""

    type: ResourceType
    name: str


class AlterOperation(IntEnum):
    """What to do to a config; the last two are for lists (Kafka's AlterConfigOp.OpType)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class Alteration(NamedTuple):
    """A change of one config."""

    name: str
    value: str | None
    operation: AlterOperation = AlterOperation.SET


# No error of a resource is tried again: a call is only where the broker was lost.
_NEVER: Collection[int] = ()


class ConfigAdmin:
    """Calls about configs and folders."""

    _calls: AdminCalls

    async def describe_configs(
        self,
        resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[ConfigResource, list[DescribeConfigsResourceResult]]:
        """All configs of these, with where their values come from."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def fetch(
            node: NodeProvider, wanted: list[ConfigResource]
        ) -> dict[ConfigResource, list[DescribeConfigsResourceResult] | KafkaException]:
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
            request = request_of(message)
            answer = await self._calls.once(node, lambda _: request, DescribeConfigsResponse, deadline_ms)
            return {
                ConfigResource(ResourceType(result.resource_type), result.resource_name): outcome_of(
                    result.error_code, result.error_message, result.configs
                )
                for result in answer.results
            }

        return await self._calls.of_keys(resources, _where_it_is_known, fetch, deadline_ms, _NEVER)

    async def incremental_alter_configs(
        self,
        alterations: Mapping[ConfigResource, Iterable[Alteration]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[ConfigResource, None]:
        """Changes configs, and leaves others as they are (KIP-339)."""

        def request(wanted: list[ConfigResource]) -> Request:
            resources = [
                incremental_alter_configs.AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        incremental_alter_configs.AlterableConfig(
                            name=change.name, config_operation=change.operation, value=change.value
                        )
                        for change in alterations[resource]
                    ],
                )
                for resource in wanted
            ]
            return request_of(IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only))

        return await self._alter(alterations, request, IncrementalAlterConfigsResponse, timeout_ms)

    async def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> Outcomes[ConfigResource, None]:
        """Gives things these configs and no others: for brokers of before 2.3."""

        def request(wanted: list[ConfigResource]) -> Request:
            resources = [
                alter_configs.AlterConfigsResource(
                    resource_type=resource.type,
                    resource_name=resource.name,
                    configs=[
                        alter_configs.AlterableConfig(name=name, value=value)
                        for name, value in configs[resource].items()
                    ],
                )
                for resource in wanted
            ]
            return request_of(AlterConfigsRequest(resources=resources, validate_only=validate_only))

        return await self._alter(configs, request, AlterConfigsResponse, timeout_ms)

    async def _alter(
        self,
        resources: Iterable[ConfigResource],
        request: Callable[[list[ConfigResource]], Request],
        response: type[IncrementalAlterConfigsResponse | AlterConfigsResponse],
        timeout_ms: int | None,
    ) -> Outcomes[ConfigResource, None]:
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def fetch(
            node: NodeProvider, wanted: list[ConfigResource]
        ) -> dict[ConfigResource, KafkaException | None]:
            answer = await self._calls.once(node, lambda _: request(wanted), response, deadline_ms)
            return {
                ConfigResource(ResourceType(result.resource_type), result.resource_name): outcome_of(
                    result.error_code, result.error_message, None
                )
                for result in answer.responses
            }

        return await self._calls.of_keys(resources, _where_it_is_known, fetch, deadline_ms, _NEVER)

    async def list_config_resources(
        self, types: Iterable[ResourceType] = (), *, timeout_ms: int | None = None
    ) -> list[ConfigResource]:
        """The things of these types, or of all, that have configs."""
        wanted = [int(type_) for type_ in types]
        # Version 0 knows of client metrics only.
        request = request_of(ListConfigResourcesRequest(resource_types=wanted), oldest=1)
        answer = await self._calls.call(
            least_loaded,
            lambda _: request,
            ListConfigResourcesResponse,
            self._calls.deadline_ms(timeout_ms),
            lambda answer: raise_for(answer.error_code),
        )
        return [
            ConfigResource(ResourceType(found.resource_type), found.resource_name) for found in answer.config_resources
        ]

    async def describe_log_dirs(
        self, broker_ids: Iterable[int], *, timeout_ms: int | None = None
    ) -> Outcomes[int, list[DescribeLogDirsResult]]:
        """The folders of each broker, with what they hold."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)
        request = request_of(DescribeLogDirsRequest(topics=None))

        async def fetch(
            node: NodeProvider, broker_ids: list[int]
        ) -> dict[int, list[DescribeLogDirsResult] | KafkaException]:
            answer = await self._calls.once(node, lambda _: request, DescribeLogDirsResponse, deadline_ms)
            return dict.fromkeys(broker_ids, outcome_of(answer.error_code, None, answer.results))

        return await self._calls.of_keys(broker_ids, _brokers, fetch, deadline_ms, _NEVER)

    async def alter_replica_log_dirs(
        self, folders: Mapping[tuple[int, TopicPartition], str], *, timeout_ms: int | None = None
    ) -> Outcomes[tuple[int, TopicPartition], None]:
        """Moves replicas, by broker id and partition, to other folders of their brokers."""
        deadline_ms = self._calls.deadline_ms(timeout_ms)

        async def lookup(
            replicas: Collection[tuple[int, TopicPartition]],
        ) -> Mapping[tuple[int, TopicPartition], NodeProvider | KafkaException]:
            return {replica: broker(replica[0]) for replica in replicas}

        async def fetch(
            node: NodeProvider, replicas: list[tuple[int, TopicPartition]]
        ) -> dict[tuple[int, TopicPartition], KafkaException | None]:
            by_folder: dict[str, list[TopicPartition]] = {}
            for replica in replicas:
                by_folder.setdefault(folders[replica], []).append(replica[1])
            message = AlterReplicaLogDirsRequest(dirs=[_to_folder(path, by_folder[path]) for path in by_folder])
            request = request_of(message)
            answer = await self._calls.once(node, lambda _: request, AlterReplicaLogDirsResponse, deadline_ms)
            broker_id = replicas[0][0]
            return {
                (broker_id, TopicPartition(topic.topic_name, partition.partition_index)): outcome_of(
                    partition.error_code, None, None
                )
                for topic in answer.results
                for partition in topic.partitions
            }

        return await self._calls.of_keys(folders, lookup, fetch, deadline_ms, _NEVER)


def _to_folder(path: str, partitions: list[TopicPartition]) -> AlterReplicaLogDir:
    topics = [AlterReplicaLogDirTopic(name=name, partitions=found) for name, found in by_topic(partitions).items()]
    return AlterReplicaLogDir(path=path, topics=topics)


async def _where_it_is_known(
    resources: Collection[ConfigResource],
) -> Mapping[ConfigResource, NodeProvider | KafkaException]:
    of_brokers = (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
    return {
        resource: broker(int(resource.name)) if resource.type in of_brokers and resource.name else least_loaded
        for resource in resources
    }


async def _brokers(broker_ids: Collection[int]) -> Mapping[int, NodeProvider | KafkaException]:
    return {broker_id: broker(broker_id) for broker_id in broker_ids}
