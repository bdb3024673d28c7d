"""`/api/v1/observe`: one request ends all rules, quotas and scenarios."""

from tests.support.http import Admin
from tests.support.records import batch_of, produce
from tests.support.virtual_broker import JOURNAL

STEPS = [{"at": 0, "quota": {"client_id": "shop", "producer_byte_rate": 5}}, {"at": "60m", "say": "late"}]
ADDRESSES = {"entity": {"ip": None}, "quotas": {"connection_creation_rate": 5}}


def test_all_rules_quotas_and_scenarios_end() -> None:
    admin = Admin(JOURNAL, "quota.producer.default=10")
    admin.broker.topic()
    assert admin.send("/api/v1/faults", "POST", {"action": "black-hole", "id": "hole", "api": "Produce"})[0] == 200
    quota = {"entity": {"user": None}, "quotas": {"consumer_byte_rate": 5}}
    assert admin.send("/api/v1/quotas", "PUT", quota)[0] == 200
    assert admin.send("/api/v1/quotas", "PUT", ADDRESSES)[0] == 200
    assert admin.send("/api/v1/scenarios/run", "POST", {"scenario": {"name": "s", "steps": STEPS}})[0] == 200
    client = admin.broker.client("shop")
    client.send(produce(9, batch_of(5_000)), 9)
    assert client.responses == []
    assert admin.send("/api/v1/observe", "POST") == (200, {"faults": ["hole"], "quotas": 3, "scenario": "run-1"})
    assert [response.throttle_time_ms for response in client.take_responses()] == [0]
    assert admin.send("/api/v1/faults") == (200, {"faults": []})
    assert admin.send("/api/v1/quotas") == (200, {"quotas": []})
    assert admin.send("/api/v1/scenarios/runs/run-1")[1]["state"] == "stopped"
    assert not admin.broker.broker.quotas.produce.quotas_enabled
    assert admin.send("/api/v1/observe", "POST") == (200, {"faults": [], "quotas": 0, "scenario": ""})


def test_a_new_quota_applies_afterwards() -> None:
    admin = Admin("quota.producer.default=10")
    admin.send("/api/v1/observe", "POST")
    admin.send("/api/v1/quotas", "PUT", {"entity": {"client-id": None}, "quotas": {"producer_byte_rate": 10}})
    admin.broker.topic()
    assert admin.broker.client().call(produce(9, batch_of(5_000)), 9).throttle_time_ms > 0
