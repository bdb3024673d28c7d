"""Rules that stop or isolate brokers: single rules, overlapping rules, and manual changes meanwhile."""

import pytest

from sluice.broker.controller.controller import ISOLATED, RUNNING, STOPPED, BrokerState
from sluice.broker.faults.actions.brokers import BrokerDown
from sluice.broker.faults.rule import Rule
from sluice.errors import FaultError
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from tests.support.faults import add
from tests.support.virtual_broker import VirtualBroker
from tests.support.virtual_proxy import VirtualProxy


@pytest.fixture(params=["brokers", "proxy"])
def three(request: pytest.FixtureRequest) -> VirtualBroker:
    cluster = VirtualBroker("sluice.brokers=3", "sluice.election.delay.ms=0")
    cluster.topic("t", replicas=3)
    return VirtualProxy(upstream=cluster) if request.param == "proxy" else cluster


def state(cluster: VirtualBroker, node_id: int = 2) -> BrokerState:
    cluster.settle()
    return cluster.cluster.controller.state(node_id)


@pytest.mark.parametrize("controlled", [True, False])
def test_broker_is_stopped_while_its_rule_lasts(three: VirtualBroker, controlled: bool) -> None:
    client = three.client(node_id=2)
    fault = add(three, Rule(BrokerDown(controlled=controlled), broker=2, until="5s"))
    assert state(three) is STOPPED
    three.advance(1_000)
    assert client.closed_at_ms is not None
    assert fault.hits == 1
    three.advance(4_000)
    assert state(three) is RUNNING
    three.client(node_id=2).call(ApiVersionsRequest(), 0)


def test_single_broker_can_be_stopped() -> None:
    alone = VirtualBroker()
    add(alone, Rule("broker-down", during="1s"))
    assert state(alone, 1) is STOPPED
    alone.advance(1_000)
    assert state(alone, 1) is RUNNING


def test_single_broker_cannot_be_isolated() -> None:
    with pytest.raises(FaultError, match=r"^fault\.action: expected a cluster of several brokers; this one has 1"):
        add(VirtualBroker(), Rule("isolate"))


@pytest.mark.parametrize("first", ["isolate", "broker-down"])
def test_stopped_takes_precedence_over_isolated_in_either_order(three: VirtualBroker, first: str) -> None:
    second = "broker-down" if first == "isolate" else "isolate"
    faults = {kind: add(three, Rule(kind, broker=2)) for kind in (first, second)}
    assert state(three) is STOPPED
    faults["broker-down"].remove()
    assert state(three) is ISOLATED
    faults["isolate"].remove()
    assert state(three) is RUNNING


def test_broker_stopped_by_two_rules_restarts_when_both_have_ended(three: VirtualBroker) -> None:
    faults = [add(three, Rule("broker-down", broker=2)), add(three, Rule("broker-down", broker=[2, 3]))]
    faults[0].remove()
    assert [state(three, 2), state(three, 3)] == [STOPPED, STOPPED]
    faults[1].remove()
    assert [state(three, 2), state(three, 3)] == [RUNNING, RUNNING]


def test_isolation_can_end_while_the_broker_is_stopped(three: VirtualBroker) -> None:
    down, isolated = add(three, Rule("broker-down", broker=2)), add(three, Rule("isolate", broker=2))
    isolated.remove()
    assert state(three) is STOPPED
    down.remove()
    assert state(three) is RUNNING


def test_broker_stopped_again_before_its_restart_stays_stopped(three: VirtualBroker) -> None:
    faults = three.cluster_server.faults
    faults.add(Rule("broker-down", broker=2, id="a"))
    faults.remove("a")
    faults.add(Rule("broker-down", broker=2, id="b"))
    assert state(three) is STOPPED
    faults.remove("b")
    assert state(three) is RUNNING


def test_broker_started_manually_stays_running(three: VirtualBroker) -> None:
    fault = add(three, Rule("broker-down", broker=2))
    three.run(three.cluster_server.start_broker(2))
    fault.remove()
    assert (state(three), fault.problem) == (RUNNING, "")


def test_isolated_broker_stopped_manually_stays_stopped(three: VirtualBroker) -> None:
    fault = add(three, Rule("isolate", broker=2))
    three.cluster_server.stop_broker(2)
    fault.remove()
    assert (state(three), fault.problem) == (STOPPED, "")


def test_rule_for_a_manually_stopped_broker_is_rejected(three: VirtualBroker) -> None:
    three.cluster_server.stop_broker(3)
    for kind in ("broker-down", "isolate"):
        with pytest.raises(FaultError, match=r"^fault\.action: broker 3 is stopped$"):
            add(three, Rule(kind, broker=[2, 3]))
    assert state(three) is RUNNING, "no broker is changed if one is rejected"


def test_failed_restart_is_reported_as_the_rules_problem(three: VirtualBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = add(three, Rule("broker-down", broker=2))
    port = three.cluster_server.servers[2].endpoints[0].port
    monkeypatch.setattr(three.loop, "bind", _in_use)
    fault.remove()
    assert state(three) is STOPPED
    assert fault.problem == f"cannot listen on 127.0.0.1:{port}: Address already in use"


def _in_use(host: str, port: int, backlog: int) -> None:
    from sluice.errors import SluiceError

    raise SluiceError(f"cannot listen on {host}:{port}: Address already in use")
