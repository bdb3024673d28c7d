"""Quota managers of a broker and of the controller: creation, subscription to quota changes, and closing."""

from sluice.config.broker_config import Config
from sluice.quotas.entity import QuotaEntity, QuotaTable
from sluice.quotas.quota_managers import ControllerQuotas, QuotaManagers
from sluice.quotas.sensor import Rate
from sluice.quotas.store import CONTROLLER_MUTATION_RATE, PRODUCER_BYTE_RATE, REQUEST_PERCENTAGE, QuotaStores

C = QuotaEntity(client_id="c")
HOUR_MS = 3_600_000


def managers_of(stores: QuotaStores, *properties: str) -> QuotaManagers:
    config = Config.load(None, properties)
    return QuotaManagers(config, Rate, lambda kind: QuotaTable("unlimited"), stores)


def stores_of(*properties: str) -> QuotaStores:
    return QuotaStores(Config.load(None, properties))


def test_byte_rate_managers_exist_from_the_start_and_others_after_their_first_quota() -> None:
    stores = stores_of()
    managers = managers_of(stores)
    assert [manager.kind for manager in managers] == ["Produce", "Fetch"]
    stores.of_clients[REQUEST_PERCENTAGE].alter(C, 5.0)
    stores.of_clients[REQUEST_PERCENTAGE].alter(C, None)
    assert [manager.kind for manager in managers] == ["Produce", "Fetch", "Request"]


def test_all_brokers_apply_cluster_quotas_including_static_ones() -> None:
    stores = stores_of("quota.producer.default=100")
    stores.of_clients[PRODUCER_BYTE_RATE].alter(C, 7.0)
    both = [managers_of(stores) for _ in range(2)]
    largest = [
        [managers.produce.max_value_in_quota_window("ANONYMOUS", client_id) for client_id in ("c", "d")]
        for managers in both
    ]
    assert largest == [[70.0, 1000.0]] * 2


def test_closed_managers_ignore_quota_changes() -> None:
    stores = stores_of()
    stopped, running = managers_of(stores), managers_of(stores)
    stopped.close()
    stores.of_clients[PRODUCER_BYTE_RATE].alter(C, 7.0)
    assert [managers.produce.quotas_enabled for managers in (stopped, running)] == [False, True]


def test_window_sizes_come_from_properties() -> None:
    properties = ("quota.window.num=5", "quota.window.size.seconds=2", "controller.quota.window.num=3")
    assert managers_of(stores_of(), *properties).config.num_samples == 5
    assert managers_of(stores_of(), *properties).config.window_ms == 2000
    stores = stores_of()
    controller = ControllerQuotas(Config.load(None, properties), QuotaTable("unlimited"), stores)
    stores.of_clients[CONTROLLER_MUTATION_RATE].alter(C, 1.0)
    assert controller.mutation is not None, "created with its first quota"
    quota = controller.mutation.quota_for("ANONYMOUS", "c", 10**12, strict=True)
    assert [quota.record(permits) for permits in (4, 1)] == [True, False], "three tokens, then a debt of one"


def test_silent_clients_expire_in_all_managers() -> None:
    stores = stores_of("quota.producer.default=100")
    managers = managers_of(stores)
    managers.produce.record("ANONYMOUS", "c", 1.0, 0)
    managers.expire(HOUR_MS + 1)
    assert [manager.snapshot(HOUR_MS + 1) for manager in managers] == [[], []]
