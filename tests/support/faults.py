"""Fault rules of brokers in virtual time."""

import pytest

from sluice.broker.faults.fault import Fault
from sluice.broker.faults.rule import Rule
from sluice.errors import FaultError
from tests.support.virtual_broker import JOURNAL, VirtualBroker


def three_brokers() -> VirtualBroker:
    """Return a cluster with a topic of two partitions that broker 1 leads."""
    cluster = VirtualBroker(JOURNAL, "sluice.brokers=3", "sluice.election.delay.ms=0")
    cluster.topic(assignments={0: (1, 2, 3), 1: (1, 2, 3)})
    return cluster


def add(cluster: VirtualBroker, rule: Rule) -> Fault:
    return cluster.cluster_server.faults.add(rule)


def rule_error(cluster: VirtualBroker, rule: Rule) -> str:
    with pytest.raises(FaultError) as error:
        add(cluster, rule)
    return str(error.value)
