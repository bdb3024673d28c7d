"""Each action on the reference page of fault rules has a valid example."""

import tomllib

import pytest

from sluice.broker.faults.actions import KINDS
from tests.support.virtual_broker import VirtualBroker
from tools.docs.reference.faults import EXAMPLES


def test_every_action_has_one_example() -> None:
    assert list(EXAMPLES) == list(KINDS)


@pytest.fixture(scope="module")
def cluster() -> VirtualBroker:
    broker = VirtualBroker("sluice.brokers=3", "default.replication.factor=3")
    broker.topic("orders")
    return broker


@pytest.mark.parametrize("kind", EXAMPLES)
def test_example_is_a_valid_rule(cluster: VirtualBroker, kind: str) -> None:
    rule = tomllib.loads(EXAMPLES[kind])
    action = rule["action"]
    assert kind == (action if isinstance(action, str) else action["kind"])
    if kind not in ("stall-tls", "stall-sasl"):  # the cluster has no such listener
        cluster.cluster_server.faults.check(rule)
