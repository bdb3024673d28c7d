"""The quota managers of a broker and of the controller. Follows Kafka's `QuotaFactory.QuotaManagers`.

The managers other than those of byte rates are created with the first quota of their kind. Mutations are counted once
per cluster, as in Kafka.
"""

from collections.abc import Callable, Iterator

from sluice.config.broker_config import Config

from .entity import QuotaEntity, QuotaRules
from .manager import ClientQuotaManager, QuotaConfig
from .mutation_quota import ControllerMutationQuotaManager
from .request_quota import ClientRequestQuotaManager
from .sensor import Rate
from .store import CONSUMER_BYTE_RATE, CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, QuotaStores


class QuotaManagers:
    """The client quotas of one broker, which follow the cluster's `stores`."""

    def __init__(
        self, config: Config, rate: type[Rate], new_rules: Callable[[str], QuotaRules], stores: QuotaStores
    ) -> None:
        self.config = _windows(config, "quota", rate)
        self._new_rules = new_rules
        self.produce = ClientQuotaManager("Produce", self.config, new_rules("Produce"))
        self.fetch = ClientQuotaManager("Fetch", self.config, new_rules("Fetch"))
        self.request: ClientRequestQuotaManager | None = None  # None until a quota of this kind is set
        if not self.produce.rules.is_fixed:
            self._measure_requests()  # a callback may limit clients without a configured quota
        self._followed = (
            (stores.of_clients[PRODUCER_BYTE_RATE], self.produce.set_quota),
            (stores.of_clients[CONSUMER_BYTE_RATE], self.fetch.set_quota),
            (stores.of_clients[REQUEST_PERCENTAGE], self._set_request_quota),
        )
        for store, apply in self._followed:
            store.follow(apply)

    def __iter__(self) -> Iterator[ClientQuotaManager]:
        yield self.produce
        yield self.fetch
        if self.request is not None:
            yield self.request

    def close(self) -> None:
        for store, apply in self._followed:
            store.unfollow(apply)

    def expire(self, now_ms: int) -> None:
        for manager in self:
            manager.expire(now_ms)

    def _set_request_quota(self, entity: QuotaEntity, bound: float | None) -> None:
        self._measure_requests().set_quota(entity, bound)

    def _measure_requests(self) -> ClientRequestQuotaManager:
        if self.request is None:
            self.request = ClientRequestQuotaManager(self.config, self._new_rules("Request"))
        return self.request


class ControllerQuotas:
    def __init__(self, config: Config, rules: QuotaRules, stores: QuotaStores) -> None:
        self._config = _windows(config, "controller.quota", Rate)
        self._rules = rules
        self.mutation: ControllerMutationQuotaManager | None = None  # None until a quota of this kind is set
        if not rules.is_fixed:
            self._count_mutations()
        stores.of_clients[CONTROLLER_MUTATION_RATE].follow(self._set_mutation_quota)

    def _set_mutation_quota(self, entity: QuotaEntity, bound: float | None) -> None:
        self._count_mutations().set_quota(entity, bound)

    def _count_mutations(self) -> ControllerMutationQuotaManager:
        if self.mutation is None:
            self.mutation = ControllerMutationQuotaManager(self._config, self._rules)
        return self.mutation


def _windows(config: Config, prefix: str, rate: type[Rate]) -> QuotaConfig:
    window_ms = config.integer(f"{prefix}.window.size.seconds") * 1000
    return QuotaConfig(num_samples=config.integer(f"{prefix}.window.num"), window_ms=window_ms, rate=rate)
