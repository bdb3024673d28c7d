"""Audits in front of a real cluster, for which a broker of sluice stands here."""

import asyncio

import msgspec
import pytest

from sluice import Broker
from sluice.audit.judge.model.attempts import Kind
from sluice.audit.judge.model.observation import Observation
from sluice.audit.probes import PROBES
from sluice.audit.runs.probe_run import run
from sluice.audit.runs.real_cluster import node_ids_of, why_not
from sluice.client.admin import AdminClient
from sluice.clock import LoopClock
from sluice.embedded.upstream import Upstream
from sluice.errors import ClusterError, SluiceError
from tools.audit_verdicts.synthetic_loops import Client, LoopClient, LoopSubject


async def produces(client: Client) -> None:
    """Send a record again until it is written, with a backoff of 100 ms."""
    while True:
        while not await client.produce():
            await client.pause(0.1)
        await client.pause(0.02)


async def observed_run(upstream: Upstream) -> Observation:
    client = LoopClient("", "produce-timed-out", "KIP-580/1", Kind.PRODUCE, produces)
    clock = LoopClock(asyncio.get_running_loop())
    result = await run(
        LoopSubject(client), PROBES[client.probe], 0, 0, clock, asyncio.Lock(), lambda: lambda: 0.0, upstream
    )
    assert result.lost == []
    return result.observation


async def test_a_run_meets_the_faults_of_a_proxy_and_leaves_nothing_behind() -> None:
    async with Broker() as cluster:
        observed = await observed_run(Upstream(cluster.bootstrap, {}))
        async with AdminClient({"bootstrap.servers": cluster.bootstrap}) as admin:
            assert [name for name, topic in (await admin.list_topics()).items() if not topic.is_internal] == []
    assert observed.problem == ""
    assert observed.fault_from_ns is not None


async def test_a_topic_of_before_is_not_used() -> None:
    async with Broker() as cluster:
        await cluster.cluster.create_topic("audit")
        with pytest.raises(ClusterError, match=r"^topic audit: "):
            await observed_run(Upstream(cluster.bootstrap, {}))


async def test_a_cluster_that_does_not_respond_is_named() -> None:
    with pytest.raises(SluiceError, match=r"^upstream 127\.0\.0\.1:9: expected a Kafka broker"):
        await node_ids_of(Upstream("127.0.0.1:9", {}))


async def test_the_ids_of_its_brokers_are_read() -> None:
    async with Broker(3) as cluster:
        assert await node_ids_of(Upstream(cluster.bootstrap, {})) == [1, 2, 3]


NEEDS_TWO = "brokers: expected the ids 1, 2, the upstream has 1"
MOVES = "steps[0].move_leader: not possible in a proxy: the upstream cluster elects its leaders"
NOT_APPLICABLE = {
    (1,): {
        "reconnect-two-brokers": NEEDS_TWO,
        "produce-new-leader": NEEDS_TWO,
        "delivery-leader-gone": NEEDS_TWO,
        "delivery-long-outage": NEEDS_TWO,
    },
    (1, 2, 3): {"produce-new-leader": MOVES},
}


@pytest.mark.parametrize(("node_ids", "expected"), NOT_APPLICABLE.items(), ids=map(str, NOT_APPLICABLE))
def test_probes_that_need_brokers_of_sluice_have_a_reason(node_ids: tuple[int, ...], expected: dict[str, str]) -> None:
    reasons = {name: why_not(probe, node_ids) for name, probe in PROBES.items()}
    assert {name: reason for name, reason in reasons.items() if reason is not None} == expected


def test_a_probe_with_a_property_of_brokers_is_not_applicable() -> None:
    probe = PROBES["produce-timed-out"]
    cluster = msgspec.structs.replace(probe.cluster, config={**probe.cluster.config, "min.insync.replicas": 2})
    changed = msgspec.structs.replace(probe, cluster=cluster)
    assert why_not(changed, [1]) == "min.insync.replicas: the upstream sets this property"
