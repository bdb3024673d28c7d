"""A user's class in place of the configured quotas (KIP-257), and the handling of its errors."""

import logging
from collections.abc import Mapping
from math import nan

import pytest

from sluice.errors import ConfigError
from sluice.quotas.callback import CallbackRules, ClientQuotaType, Cluster, close, has_new_limits, load_callback
from sluice.quotas.entity import DEFAULT, QuotaEntity, QuotaTable
from sluice.quotas.explain import explain
from sluice.quotas.manager import ClientQuotaManager, QuotaConfig

HERE = __name__
EVERYONE = QuotaEntity(client_id=DEFAULT)


class Tenants:
    """One limit per tenant; the tenant is the client id up to the first dot."""

    def __init__(self) -> None:
        self.limits: dict[str, float | None] = {"a": 100.0}
        self.calls: list[object] = []
        self.reset = False
        self.fails: set[str] = set()

    def _called(self, method: str) -> None:
        if method in self.fails:
            raise KeyError(method)

    def configure(self, configs: Mapping[str, str]) -> None:
        self.calls.append(configs["node.id"])

    def quota_metric_tags(self, quota_type: ClientQuotaType, principal: str, client_id: str) -> dict[str, str]:
        self._called("quota_metric_tags")
        return {"tenant": client_id.partition(".")[0]}

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Mapping[str, str]) -> float | None:
        self._called("quota_limit")
        return self.limits.get(metric_tags["tenant"])

    def update_quota(self, quota_type: ClientQuotaType, quota_entity: QuotaEntity, new_value: float) -> None:
        self._called("update_quota")
        self.calls.append((quota_type, quota_entity, new_value))

    def remove_quota(self, quota_type: ClientQuotaType, quota_entity: QuotaEntity) -> None:
        self.calls.append((quota_type, quota_entity))

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        self._called("quota_reset_required")
        required, self.reset = self.reset, False
        return required

    def update_cluster_metadata(self, cluster: Cluster) -> bool:
        self._called("update_cluster_metadata")
        self.calls.append(dict(cluster))
        return len(cluster) > 1

    def close(self) -> None:
        self._called("close")
        self.calls.append("closed")


class Unfinished:
    """A class that lacks two methods."""

    quota_metric_tags = quota_limit = update_quota = remove_quota = quota_reset_required = Tenants.close

    def configure(self, configs: Mapping[str, str]) -> None:
        pass


class Broken:
    """A class whose constructor fails."""

    def __init__(self) -> None:
        raise RuntimeError("no database")


def manager_of(tenants: Tenants) -> ClientQuotaManager:
    return ClientQuotaManager("Produce", QuotaConfig(), CallbackRules(tenants, "Produce", QuotaTable("unlimited")))


def use(manager: ClientQuotaManager, client_id: str, value: float = 2_000.0) -> int:
    return manager.record("alice", client_id, value, 0)


def test_clients_with_equal_tags_share_one_limit() -> None:
    manager = manager_of(Tenants())
    assert (use(manager, "a.one", 600.0), use(manager, "a.two", 600.0)) == (0, 2_000)
    assert use(manager, "b.one", 1e9) == 0, "client without a limit"
    assert [(usage.user, usage.client_id) for usage in manager.snapshot(0)] == [("", "tenant=a"), ("", "tenant=b")]


@pytest.fixture
def tenants() -> Tenants:
    return Tenants()


def test_limits_are_read_again_only_after_quota_reset_required_returns_true(tenants: Tenants) -> None:
    manager = manager_of(tenants)
    assert use(manager, "a.one") == 10_000
    tenants.limits["a"] = 200.0
    assert use(manager, "a.one", 0.0) == 10_000, "the limit before the reset"
    tenants.reset = True
    assert use(manager, "a.one", 0.0) == 0


def test_callback_receives_quota_changes_and_may_use_them(tenants: Tenants) -> None:
    manager = manager_of(tenants)
    manager.set_quota(EVERYONE, 7.0)
    manager.set_quota(EVERYONE, None)
    produce = ClientQuotaType.PRODUCE
    assert tenants.calls == [(produce, EVERYONE, 7.0), (produce, EVERYONE)]


def failures(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    return [(record.__dict__["method"], record.__dict__["error"]) for record in caplog.records]


@pytest.mark.parametrize("method", ["quota_metric_tags", "quota_limit"])
def test_failing_callback_falls_back_to_configured_quotas_and_logs_once(
    method: str, caplog: pytest.LogCaptureFixture, tenants: Tenants
) -> None:
    manager = manager_of(tenants)
    manager.set_quota(EVERYONE, 50.0)
    tenants.fails = {method}
    with caplog.at_level(logging.ERROR, "sluice.quotas"):
        assert [use(manager, "a.one", 1_000.0), use(manager, "a.one", 0.0)] == [10_000, 10_000]
        assert failures(caplog) == [(method, f"KeyError: '{method}'")]
        tenants.fails = set()
        use(manager, "a.one", 0.0)
        manager.hold_to_limits()
        tenants.fails = {method}
        manager.hold_to_limits()
        use(manager, "a.one", 0.0)
    assert len(failures(caplog)) == 2, "it succeeded in between"


@pytest.mark.parametrize("limit", [0.0, -1.0, nan, float("inf")])
def test_limit_that_is_not_a_finite_number_above_0_is_a_failure(limit: float, caplog: pytest.LogCaptureFixture) -> None:
    tenants = Tenants()
    tenants.limits["a"] = limit
    assert use(manager_of(tenants), "a.one") == 0
    assert failures(caplog) == [
        ("quota_limit", f"ValueError: quota_limit: expected a finite number above 0, got {limit!r}")
    ]


def test_tags_that_are_not_strings_are_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Tenants, "quota_metric_tags", lambda *_: {"tenant": 5})
    assert use(manager_of(Tenants()), "a.one") == 0
    error = "TypeError: quota_metric_tags: expected strings, got {'tenant': 5}"
    assert ("quota_metric_tags", error) in failures(caplog)


def test_failing_notification_methods_are_logged(caplog: pytest.LogCaptureFixture, tenants: Tenants) -> None:
    tenants.fails = {"update_quota", "quota_reset_required", "update_cluster_metadata", "close"}
    manager = manager_of(tenants)
    manager.set_quota(EVERYONE, 7.0)
    use(manager, "a.one")
    assert not has_new_limits(tenants, {})
    close(tenants)
    assert {method for method, _ in failures(caplog)} == tenants.fails


def test_topic_changes_can_change_limits(tenants: Tenants) -> None:
    assert [has_new_limits(tenants, cluster) for cluster in ({"t": (1, 1)}, {"t": (1,), "u": (2,)})] == [False, True]
    close(tenants)
    assert tenants.calls == [{"t": (1, 1)}, {"t": (1,), "u": (2,)}, "closed"]


def test_explanation_names_the_tags() -> None:
    manager = manager_of(Tenants())
    (found,) = explain([manager], "alice", "a.one", 0)
    assert found.why == "client.quota.callback.class counts the client under tenant a and sets the limit"
    assert found.bound == 100.0


def test_class_is_loaded_and_configured() -> None:
    callback = load_callback(f"{HERE}.Tenants", {"node.id": "1"})
    assert isinstance(callback, Tenants)
    assert callback.calls == ["1"]


UNUSABLE = [
    ("nowhere.Tenants", "cannot load: ModuleNotFoundError: No module named 'nowhere'"),
    ("Tenants", "cannot load: ValueError: Empty module name"),
    (f"{HERE}.Nobody", f"cannot load: AttributeError: module '{HERE}' has no attribute 'Nobody'"),
    (f"{HERE}.Broken", "cannot load: RuntimeError: no database"),
    (f"{HERE}.Unfinished", "missing methods: update_cluster_metadata, close"),
]


@pytest.mark.parametrize(("path", "problem"), UNUSABLE)
def test_unusable_class_raises_config_error_with_one_line(path: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_callback(path, {})
    assert str(error.value) == f"client.quota.callback.class={path}: {problem}"
