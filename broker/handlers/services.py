"""The interfaces of the broker for handlers, one for each folder. Imported by type checkers only."""

from collections.abc import Callable
from typing import Protocol

from sluice.broker.controller.cluster import Cluster
from sluice.broker.controller.configs.client_metrics_manager import Telemetry
from sluice.broker.controller.configs.control import ConfigurationControl
from sluice.broker.coordinator.group.coordinator import GroupCoordinator
from sluice.broker.coordinator.services import CoordinatorHost
from sluice.broker.coordinator.transaction.coordinator import TransactionCoordinator
from sluice.broker.metadata.cache import MetadataCache
from sluice.broker.metadata.features import Features
from sluice.broker.metadata.new_topic import NewTopic, TopicError
from sluice.broker.metadata.topic import Topic
from sluice.broker.replica.fetch_session import FetchSessionCache
from sluice.broker.requests.context import Outcome, RequestContext
from sluice.broker.security.acl.auth_helper import AuthHelper
from sluice.broker.security.acl.authorizer import Authorizer
from sluice.broker.share.manager import SharePartitionManager
from sluice.broker.throttling.throttler import Throttler
from sluice.protocol.apis.api_versions import ApiVersion
from sluice.protocol.errors import ErrorCode
from sluice.protocol.message import Message


class Services(Protocol):
    @property
    def node_id(self) -> int: ...
    @property
    def cluster(self) -> Cluster: ...
    @property
    def controller_id(self) -> int: ...
    @property
    def metadata(self) -> MetadataCache: ...
    @property
    def authorizer(self) -> Authorizer | None: ...
    @property
    def auth(self) -> AuthHelper: ...


class RecordServices(Services, CoordinatorHost, Protocol):
    @property
    def throttler(self) -> Throttler: ...
    @property
    def fetch_sessions(self) -> FetchSessionCache: ...
    @property
    def max_fetch_bytes(self) -> int: ...
    @property
    def has_plain_fetches(self) -> bool: ...
    @property
    def selects_replicas(self) -> bool: ...


class ShareServices(RecordServices, Protocol):
    @property
    def share_partitions(self) -> SharePartitionManager: ...


class SecurityServices(Services, Protocol): ...


class TopicServices(Services, Protocol):
    @property
    def auto_creates_topics(self) -> bool: ...
    @property
    def deletes_topics(self) -> bool: ...
    @property
    def throttler(self) -> Throttler: ...
    def auto_create_topic(self, name: str) -> ErrorCode: ...
    def delete_topic(self, topic: Topic) -> ErrorCode: ...


class ClusterServices(Services, Protocol):
    @property
    def api_keys(self) -> list[ApiVersion]: ...
    @property
    def features(self) -> Features: ...


class ConfigServices(Services, Protocol):
    @property
    def configs(self) -> ConfigurationControl: ...
    @property
    def telemetry(self) -> Telemetry: ...


class GroupServices(Services, CoordinatorHost, Protocol):
    def serves_groups(self, protocol: str) -> bool: ...
    @property
    def groups(self) -> GroupCoordinator: ...
    @property
    def throttler(self) -> Throttler: ...
    def create_topic(self, new: NewTopic) -> Topic | TopicError: ...


class TransactionServices(GroupServices, Protocol):
    @property
    def transactions(self) -> TransactionCoordinator: ...


class AllServices(
    ShareServices, SecurityServices, TopicServices, ClusterServices, ConfigServices, TransactionServices, Protocol
): ...


Handle = Callable[[RequestContext, Message, AllServices], Message | Outcome]
