"""The brokers of a run: those of sluice, or proxies in front of a real cluster (`sluice audit run --upstream`)."""

from collections.abc import Collection

from sluice.audit.probes.probe import Probe
from sluice.broker.scenarios.run import proxy_refusal
from sluice.embedded.broker import Broker
from sluice.embedded.proxy import Proxy
from sluice.embedded.upstream import Upstream
from sluice.proxy.properties import acts_in_proxy

# Properties that let brokers of sluice start and rebalance sooner; a cluster with other values only takes longer.
_ONLY_FASTER = frozenset(
    {
        "group.initial.rebalance.delay.ms",
        "group.min.session.timeout.ms",
        "offsets.topic.num.partitions",
        "sluice.election.delay.ms",
        "transaction.state.log.num.partitions",
    }
)


def brokers_for(probe: Probe, seed: int, upstream: Upstream | None) -> Broker:
    """Return the brokers, or the proxies in their place, which are not started yet."""
    config = {name: value for name, value in probe.cluster.config.items() if not isinstance(value, bool)}
    if upstream is None:
        default = {"group.initial.rebalance.delay.ms": 3000}  # Kafka's default; Broker's is shorter
        return Broker(probe.cluster.brokers, config={**default, **config}, seed=seed)
    own = {name: value for name, value in config.items() if acts_in_proxy(name)}
    return Proxy(upstream.bootstrap, upstream_config=upstream.properties, config=own, seed=seed, protect_existing=True)


async def node_ids_of(upstream: Upstream) -> list[int]:
    """Raise SluiceError if the cluster does not respond."""
    async with Proxy(upstream.bootstrap, upstream_config=upstream.properties) as proxy:
        return list(proxy.brokers)


def why_not(probe: Probe, node_ids: Collection[int]) -> str | None:
    """Return why a probe needs brokers of sluice; None if it can run in front of a cluster."""
    wanted = range(1, probe.cluster.brokers + 1)
    if not {*wanted} <= {*node_ids}:
        expected, found = (", ".join(map(str, ids)) for ids in (wanted, node_ids))
        return f"brokers: expected the ids {expected}, the upstream has {found}"
    for name in probe.cluster.config:
        if not acts_in_proxy(name) and name not in _ONLY_FASTER:
            return f"{name}: the upstream sets this property"
    return proxy_refusal(probe.cluster)
