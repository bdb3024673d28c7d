"""The source of clients' quotas: the configured ones, or a `client.quota.callback.class` (KIP-257)."""

from collections.abc import Iterable

from sluice.broker.metadata.topic import Topic
from sluice.config.broker_config import Config
from sluice.quotas.callback import CallbackRules, ClientQuotaCallback, close, has_new_limits, load_callback
from sluice.quotas.entity import EmptyClientId, QuotaRules, QuotaTable
from sluice.quotas.manager import ClientQuotaManager

_PROPERTY = "client.quota.callback.class"


class QuotaResolver:
    """The rules of a broker or the controller, each with its own callback instance."""

    def __init__(self, config: Config, empty_client_id: EmptyClientId) -> None:
        self._empty_client_id = empty_client_id
        self.callback: ClientQuotaCallback | None = None
        self._last_cluster: dict[str, tuple[int, ...]] = {}
        path = config.value(_PROPERTY)
        if path:
            texts = {setting.property.name: setting.value for setting in config.entries()}
            self.callback = load_callback(str(path), {name: text for name, text in texts.items() if text is not None})

    def rules_of(self, kind: str) -> QuotaRules:
        table = QuotaTable(self._empty_client_id)
        if self.callback is None:
            return table
        return CallbackRules(self.callback, kind, table)

    def update_metadata(self, topics: "Iterable[Topic]", managers: Iterable[ClientQuotaManager]) -> None:
        """Pass changed metadata to the callback (`updateClusterMetadata`); apply new limits to `managers`."""
        cluster = {topic.name: tuple(partition.leader for partition in topic.partitions) for topic in topics}
        if self.callback is None or cluster == self._last_cluster:
            return
        self._last_cluster = cluster
        if has_new_limits(self.callback, cluster):
            for manager in managers:
                manager.hold_to_limits()

    def close(self) -> None:
        if self.callback is not None:
            close(self.callback)
