"""The list of rules against what clients observe: each action that changes a state, with each of its ends."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import count
from ssl import SSLWantReadError
from typing import NamedTuple

import pytest

from sluice.broker.admin.resources.faults import describe
from sluice.broker.controller.controller import ISOLATED, STOPPED
from sluice.broker.faults.actions.connections import Bandwidth, DropIdle, RefuseConnections
from sluice.broker.faults.actions.disks import SlowDisk
from sluice.broker.faults.actions.error_response import Error
from sluice.broker.faults.actions.leaders import CoordinatorMoved, LeaderMoved, SlowElection
from sluice.broker.faults.actions.stale_metadata import MetadataLag
from sluice.broker.faults.fault import Fault
from sluice.broker.faults.rule import Rule
from sluice.broker.metadata.topic import NO_LEADER
from sluice.broker.scenarios.files import scenario_of
from sluice.broker.scenarios.run import Run
from sluice.errors import ClusterError
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.find_coordinator import FindCoordinatorRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from sluice.protocol.apis.sasl_authenticate import SaslAuthenticateRequest
from sluice.protocol.errors import ErrorCode
from tests.support.certificates import certificates
from tests.support.faults import add, rule_error
from tests.support.records import produce
from tests.support.sasl import SASL, handshake, plain
from tests.support.tls_client import TlsClient
from tests.support.virtual_broker import JOURNAL, Client, VirtualBroker
from tests.support.wire import error_codes

CERTIFICATES = certificates()
TLS = ("listeners=SSL://127.0.0.1:0", *CERTIFICATES.broker_overrides)
PLAINTEXT: tuple[str, ...] = ()
_numbers = count()


def cluster_of_three(*overrides: str) -> VirtualBroker:
    """Return a cluster whose broker 1 leads topic t and coordinates group g."""
    cluster = VirtualBroker(JOURNAL, "sluice.brokers=3", "sluice.election.delay.ms=0", *overrides)
    cluster.topic(assignments={0: (1, 2, 3)})
    for partition in cluster.cluster.internal_topic("__consumer_offsets").partitions:
        assert cluster.cluster.controller.move_leader(partition, 1) is None
    return cluster


# -- whether clients observe the effect --------------------------------------------------------------------------------


def is_unanswered(client: Client) -> bool:
    client.send(ApiVersionsRequest(), 0)
    client.broker.settle()
    return not client.take_responses()


def new_client_is_unanswered(cluster: VirtualBroker) -> bool:
    return is_unanswered(cluster.client(node_id=2))


def port_is_closed(cluster: VirtualBroker) -> bool:
    (endpoint,) = cluster.cluster_server.servers[2].endpoints
    return endpoint.port not in cluster.loop.factories


def new_client_is_closed(cluster: VirtualBroker) -> bool:
    client = cluster.client(node_id=2)
    cluster.settle()
    return not client.is_open


def tls_handshake_is_stalled(cluster: VirtualBroker) -> bool:
    client = TlsClient(cluster, CERTIFICATES.client_context())
    with suppress(SSLWantReadError):
        client.tls.do_handshake()
    client.send_plain(client.take_outgoing())
    cluster.settle()
    return not client.transport.writes


def authentication_is_stalled(cluster: VirtualBroker) -> bool:
    client = cluster.client()
    handshake(client)
    client.send(SaslAuthenticateRequest(auth_bytes=plain()), 2)
    cluster.settle()
    return not client.take_responses()


def idle_client_is_dropped(cluster: VirtualBroker) -> bool:
    client = cluster.client(node_id=2)
    cluster.advance(1_000)
    return is_unanswered(client)


def broker_is_stopped(cluster: VirtualBroker) -> bool:
    return cluster.cluster.controller.state(2) is STOPPED


def broker_is_isolated(cluster: VirtualBroker) -> bool:
    return cluster.cluster.controller.state(2) is ISOLATED


def controller_is_lost(cluster: VirtualBroker) -> bool:
    return cluster.cluster.controller.is_unavailable


def election_is_slow(cluster: VirtualBroker) -> bool:
    topic = cluster.topic(f"elected-{next(_numbers)}", assignments={0: (1, 3)})
    cluster.cluster_server.move_leader(topic.name, 0, 3)
    return topic.partitions[0].leader == NO_LEADER


def leader_is_moved(cluster: VirtualBroker) -> bool:
    return cluster.partition().leader != 1


def coordinator_is_moved(cluster: VirtualBroker) -> bool:
    found = cluster.client().call(FindCoordinatorRequest(key="g", key_type=0), 3)
    return bool(found.node_id != 1)


def metadata_is_old(cluster: VirtualBroker) -> bool:
    """Move the leader of a topic to and fro."""
    partition = cluster.partition()
    cluster.cluster_server.move_leader("t", 0, 3 if partition.leader == 1 else 1)
    request = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    (topic,) = cluster.client(node_id=2).call(request, 9).topics
    return bool(topic.partitions[0].leader_id != partition.leader)


def append_fails(cluster: VirtualBroker) -> bool:
    return error_codes(cluster.client().call(produce(9), 9)) == [ErrorCode.KAFKA_STORAGE_ERROR]


def append_waits(cluster: VirtualBroker) -> bool:
    client = cluster.client()
    client.send(produce(9), 9)
    cluster.settle()
    return not client.take_responses()


def metadata_fails(cluster: VirtualBroker) -> bool:
    return bool(cluster.client().call(MetadataRequest(topics=None), 9).topics[0].error_code)


# -- the ways to end ---------------------------------------------------------------------------------------------------


def restart_by_api(cluster: VirtualBroker) -> None:
    if cluster.cluster.controller.state(2) is not STOPPED:
        cluster.cluster_server.stop_broker(2)
    start_by_api(cluster)


def restart_by_scenario(cluster: VirtualBroker) -> None:
    document = {"name": "s", "brokers": 3, "steps": [{"at": 0, "stop": 2}, {"at": "1s", "start": 2}]}
    Run(scenario_of(document), cluster.cluster_server).start()
    cluster.advance(2_000)


def start_by_api(cluster: VirtualBroker) -> None:
    cluster.run(cluster.cluster_server.start_broker(2))


def rejoin_by_api(cluster: VirtualBroker) -> None:
    cluster.cluster_server.rejoin_broker(2)


def move_leader_back(cluster: VirtualBroker) -> None:
    cluster.cluster_server.move_leader("t", 0, 1)


def move_coordinators_back(cluster: VirtualBroker) -> None:
    for partition in cluster.cluster.topics["__consumer_offsets"].partitions:
        cluster.cluster_server.move_leader("__consumer_offsets", partition.index, 1)


IN_FORCE, OVER = ("in force", True), ("over", False)
Shown = tuple[str, bool]


class Case(NamedTuple):
    rule: Callable[..., Rule]
    has_effect: Callable[[VirtualBroker], bool]
    listener: tuple[str, ...] = PLAINTEXT
    times: Shown | None = None  # after the only hit; None if the action accepts no `times`
    restarted: Shown = IN_FORCE
    undone: Mapping[Callable[[VirtualBroker], None], Shown] = {}


CASES = {
    "broker-down": Case(
        partial(Rule, "broker-down", broker=2), broker_is_stopped, restarted=OVER, undone={start_by_api: OVER}
    ),
    "isolate": Case(
        partial(Rule, "isolate", broker=2), broker_is_isolated, restarted=OVER, undone={rejoin_by_api: OVER}
    ),
    "controller-lost": Case(partial(Rule, "controller-lost"), controller_is_lost),
    "slow-election": Case(partial(Rule, SlowElection("2s")), election_is_slow),
    "leader-moved": Case(
        partial(Rule, LeaderMoved(to=2), topic="t"),
        leader_is_moved,
        restarted=OVER,  # another replica is elected
        undone={move_leader_back: OVER},
    ),
    "coordinator-moved": Case(
        partial(Rule, CoordinatorMoved(to=2), group="g"),
        coordinator_is_moved,
        restarted=OVER,
        undone={move_coordinators_back: OVER},
    ),
    "stale-metadata": Case(partial(Rule, "stale-metadata", broker=2), metadata_is_old),
    "metadata-lag": Case(partial(Rule, MetadataLag("60m"), broker=2), metadata_is_old),
    "disk-full": Case(partial(Rule, "disk-full"), append_fails),
    "slow-disk": Case(partial(Rule, SlowDisk("60m")), append_waits, times=OVER),
    "closed port": Case(partial(Rule, "refuse-connections", broker=2), port_is_closed),
    "reset connections": Case(partial(Rule, RefuseConnections("rst")), new_client_is_closed, times=OVER),
    "closed connections": Case(partial(Rule, RefuseConnections("fin")), new_client_is_closed, times=OVER),
    "silent-connections": Case(partial(Rule, "silent-connections"), new_client_is_unanswered, times=OVER),
    "stall-tls": Case(partial(Rule, "stall-tls"), tls_handshake_is_stalled, TLS, times=OVER),
    "stall-sasl": Case(partial(Rule, "stall-sasl"), authentication_is_stalled, SASL, times=OVER),
    "bandwidth": Case(partial(Rule, Bandwidth(in_bytes_per_s=1)), new_client_is_unanswered, times=OVER),
    "drop-idle": Case(partial(Rule, DropIdle("1s")), idle_client_is_dropped, times=OVER),
    "error": Case(partial(Rule, Error("UNKNOWN_SERVER_ERROR"), api="Metadata"), metadata_fails, times=OVER),
}


def begun(case: Case, **fields: object) -> tuple[VirtualBroker, Fault]:
    cluster = cluster_of_three(*case.listener)
    fault = add(cluster, case.rule(**fields))
    cluster.settle()
    assert shown(cluster, case, fault) == IN_FORCE
    return cluster, fault


def shown(cluster: VirtualBroker, case: Case, fault: Fault) -> Shown:
    """Return the state over HTTP, which the page and the command line show, and what clients observe."""
    cluster.settle()
    return describe(fault).state, case.has_effect(cluster)


each_action = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


@each_action
@pytest.mark.parametrize("field", ["during", "until"])
def test_rule_is_over_when_its_time_has_elapsed(case: Case, field: str) -> None:
    cluster, fault = begun(case, **{field: "5s"})
    cluster.advance(5_000)
    assert describe(fault).state == "over", "also without another request or connection"
    assert shown(cluster, case, fault) == OVER


@each_action
def test_rule_is_over_when_its_times_are_used_up(case: Case) -> None:
    cluster = cluster_of_three(*case.listener)
    if case.times is None:
        assert rule_error(cluster, case.rule(times=1)).startswith("fault.times: ")
        return
    fault = add(cluster, case.rule(times=1))
    assert (describe(fault).state, case.has_effect(cluster)) == IN_FORCE
    assert shown(cluster, case, fault) == case.times


@each_action
def test_rule_has_no_effect_when_it_was_removed(case: Case) -> None:
    cluster, fault = begun(case)
    fault.remove()
    assert shown(cluster, case, fault) == ("removed", False)


@each_action
def test_rule_has_no_effect_when_an_error_disabled_it(case: Case) -> None:
    cluster, fault = begun(case)
    fault.disable(ValueError("no"))
    assert shown(cluster, case, fault) == ("disabled", False)


@each_action
@pytest.mark.parametrize("restart", [restart_by_api, restart_by_scenario])
def test_restart_of_a_broker(case: Case, restart: Callable[[VirtualBroker], None]) -> None:
    cluster, fault = begun(case)
    if restart is restart_by_scenario and not cluster.cluster.controller.is_running(2):
        with pytest.raises(ClusterError, match="broker 2: expected running at the start, got "):
            restart(cluster)
        assert shown(cluster, case, fault) == IN_FORCE
        return
    restart(cluster)
    assert shown(cluster, case, fault) == case.restarted
    assert cluster.cluster.controller.is_running(2)
    fault.remove()
    cluster.settle()
    assert (cluster.cluster.controller.is_running(2), fault.problem) == (True, "")


@pytest.mark.parametrize(
    ("case", "undo", "expected"),
    [
        pytest.param(case, undo, expected, id=f"{name}, {undo.__name__}")
        for name, case in CASES.items()
        for undo, expected in case.undone.items()
    ],
)
def test_rule_is_over_when_another_action_undoes_its_state(
    case: Case, undo: Callable[[VirtualBroker], None], expected: Shown
) -> None:
    cluster, fault = begun(case)
    undo(cluster)
    assert shown(cluster, case, fault) == expected
    fault.remove()
    assert shown(cluster, case, fault) == ("removed", False)


@each_action
def test_close_of_the_cluster_changes_nothing_and_starts_no_broker(case: Case) -> None:
    cluster, fault = begun(case, during="5s")
    state = cluster.cluster.controller.state(2)
    cluster.cluster_server.close()
    cluster.advance(10_000)
    fault.remove()
    cluster.settle()
    assert (cluster.cluster.controller.state(2), fault.problem) == (state, "")


@pytest.fixture
def cluster() -> VirtualBroker:
    return cluster_of_three()


def test_permanent_change_is_over_at_once(cluster: VirtualBroker) -> None:
    fault = add(cluster, Rule("unclean-election", topic="t"))
    assert (describe(fault).state, cluster.partition().leader) == ("over", 2)
    fault.remove()
    assert cluster.partition().leader == 2


@pytest.mark.parametrize("rule", [Rule("broker-down", broker=2, after="1s"), Rule("close", after="1s")])
def test_rule_is_pending_before_its_start(rule: Rule, cluster: VirtualBroker) -> None:
    fault = add(cluster, rule)
    assert describe(fault).state == "pending"
    cluster.advance(1_000)
    assert describe(fault).state == "in force"


# -- several rules for one broker or partition -------------------------------------------------------------------------


def test_rule_for_two_brokers_is_over_when_other_means_changed_both(cluster: VirtualBroker) -> None:
    fault = add(cluster, Rule("broker-down", broker=[2, 3]))
    states = []
    for node_id in (2, 3):
        cluster.run(cluster.cluster_server.start_broker(node_id))
        states.append(describe(fault).state)
    assert states == ["in force", "over"]


def test_broker_stopped_again_by_other_means_is_not_started_by_an_old_rule(cluster: VirtualBroker) -> None:
    fault = add(cluster, Rule("broker-down", broker=2))
    start_by_api(cluster)
    cluster.cluster_server.stop_broker(2)
    fault.remove()
    cluster.settle()
    assert broker_is_stopped(cluster)


def test_new_rule_does_not_revive_one_that_other_means_undid(cluster: VirtualBroker) -> None:
    add(cluster, Rule("broker-down", broker=2))
    start_by_api(cluster)
    add(cluster, Rule("isolate", broker=2))
    assert broker_is_isolated(cluster)


def test_two_rules_for_one_broker_are_over_when_other_means_start_it(cluster: VirtualBroker) -> None:
    faults = [add(cluster, Rule(kind, broker=2)) for kind in ("isolate", "broker-down")]
    start_by_api(cluster)
    assert [describe(fault).state for fault in faults] == ["over", "over"]


@pytest.mark.parametrize(("ends", "between"), [([0, 1], 3), ([1, 0], 2)], ids=["first first", "last first"])
def test_leader_moved_by_two_rules_returns_when_both_have_ended(ends: list[int], between: int) -> None:
    cluster = cluster_of_three()
    faults = [add(cluster, Rule(LeaderMoved(to=to), topic="t")) for to in (2, 3)]
    assert [describe(fault).state for fault in faults] == ["in force", "in force"]
    leaders = []
    for index in ends:
        faults[index].remove()
        leaders.append(cluster.partition().leader)
    assert leaders == [between, 1]


def test_rules_are_over_when_another_leader_is_elected_or_the_topic_is_deleted(cluster: VirtualBroker) -> None:
    faults = [add(cluster, Rule(LeaderMoved(to=to), topic="t")) for to in (2, 3)]
    cluster.cluster_server.stop_broker(3)
    assert [describe(fault).state for fault in faults] == ["over", "over"]
    fault = add(cluster, Rule(LeaderMoved(to=2), topic="t"))
    cluster.cluster.delete(cluster.cluster.topics["t"])
    assert describe(fault).state == "over"


def test_leader_returns_when_the_rule_ends_during_its_slow_election(cluster: VirtualBroker) -> None:
    add(cluster, Rule(SlowElection("2s")))
    fault = add(cluster, Rule(LeaderMoved(to=2), topic="t"))
    cluster.advance(1_000)
    assert (describe(fault).state, cluster.partition().leader) == ("in force", NO_LEADER)
    fault.remove()
    cluster.advance(2_000)
    assert cluster.partition().leader == 1
