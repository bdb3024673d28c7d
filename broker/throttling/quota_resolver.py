"""By which rules a client's quotas are found: by those that are set, or by a class of one's own (KIP-257)."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sluice.broker.metadata.topic import Topic
from sluice.config.broker_config import Config
from sluice.quotas.entity import EmptyClientId, QuotaRules, QuotaTable
from sluice.quotas.manager import ClientQuotaManager

if TYPE_CHECKING:
    from sluice.quotas.callback import ClientQuotaCallback

_PROPERTY = "client.quota.callback.class"


class QuotaResolver:
    """Makes the rules of each kind of quota, for one broker or for the controller; each has its own callback."""

    def __init__(self, config: Config, empty_client_id: EmptyClientId) -> None:
        """Raises ConfigError where the class cannot be used."""
        self._empty_client_id = empty_client_id
        self.callback: ClientQuotaCallback | None = None
        self._seen: dict[str, tuple[int, ...]] = {}
        path = config.value(_PROPERTY)
        if path:
            from sluice.quotas.callback import load_callback  # few have one

            texts = {setting.property.name: setting.value for setting in config.entries()}
            self.callback = load_callback(str(path), {name: text for name, text in texts.items() if text is not None})

    def rules_of(self, kind: str) -> QuotaRules:
        """The rules of one kind."""
        table = QuotaTable(self._empty_client_id)
        if self.callback is None:
            return table
        from sluice.quotas.callback import CallbackRules

        return CallbackRules(self.callback, kind, table)

    def update_metadata(self, topics: "Iterable[Topic]", managers: Iterable[ClientQuotaManager]) -> None:
        """Tells the callback of topics and leaders if they are others than the last time."""
        cluster = {topic.name: tuple(partition.leader for partition in topic.partitions) for topic in topics}
        if self.callback is None or cluster == self._seen:
            return
        self._seen = cluster
        from sluice.quotas.callback import has_new_limits

        if has_new_limits(self.callback, cluster):
            for manager in managers:
                manager.hold_to_limits()

    def close(self) -> None:
        """The callback is not asked any more."""
        if self.callback is not None:
            from sluice.quotas.callback import close

            close(self.callback)
