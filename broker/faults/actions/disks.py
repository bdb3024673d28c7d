"""Actions on disks: slow, or full. They affect the broker that leads a partition, which writes it."""

from errno import ENOSPC
from os import strerror
from typing import Annotated, ClassVar

import msgspec

from sluice.broker.faults.fault import Fault, StateAction
from sluice.broker.faults.matching.match import Match
from sluice.broker.faults.matching.values import Duration, Rate, RuleProblem, parse_bytes_per_s, parse_ms
from sluice.broker.faults.requests.fault_execution import FaultExecution, Reply, RequestAction, RuleHit
from sluice.broker.faults.target import FaultTarget
from sluice.broker.faults.undo import Undo
from sluice.broker.requests.context import Outcome
from sluice.protocol.apis import ApiKey


class SlowDisk(RequestAction, frozen=True, tag="slow-disk"):
    """Makes each broker's reads and writes wait for one slow disk, in sequence."""

    latency: Annotated[Duration, msgspec.Meta(description="of each read and write")] = 0
    bytes_per_s: Annotated[Rate | None, msgspec.Meta(description="rate of reads and writes: 50000, 50k, 1M")] = None

    def check(self, match: Match) -> None:
        if not self._latency_ms and self.bytes_per_s is None:
            raise RuleProblem("action", "expected latency, bytes_per_s or both")
        parse_bytes_per_s(self.bytes_per_s, "action.bytes_per_s")

    def can_hit(self, api_key: int, version: int) -> bool:
        return api_key in (ApiKey.PRODUCE, ApiKey.FETCH)

    def before(self, intercepted: FaultExecution, hit: RuleHit) -> Reply | None:
        ctx = intercepted.ctx
        if ctx.route.api_key != ApiKey.PRODUCE:
            return None
        return intercepted.wait_before(hit.fault, self._takes_ms(intercepted, hit, ctx.request_bytes))

    def after(self, intercepted: FaultExecution, hit: RuleHit, reply: Reply) -> Reply:
        fetched = intercepted.fetched
        if fetched is None or not fetched.read_bytes or isinstance(reply, Outcome):
            return reply
        return intercepted.wait_after(hit.fault, self._takes_ms(intercepted, hit, fetched.read_bytes), reply)

    @property
    def _latency_ms(self) -> float:
        return parse_ms(self.latency, "action.latency")

    def _takes_ms(self, intercepted: FaultExecution, hit: RuleHit, size: int) -> float:
        broker, free_at_ms = intercepted.broker, hit.fault.free_at_ms
        now_ms = broker.clock.monotonic_ms()
        bytes_per_s = parse_bytes_per_s(self.bytes_per_s, "action.bytes_per_s")
        own_ms = self._latency_ms + (0 if bytes_per_s is None else size * 1e3 / bytes_per_s)
        done_ms = free_at_ms[broker.node_id] = max(now_ms, free_at_ms.get(broker.node_id, now_ms)) + own_ms
        return done_ms - now_ms


class DiskFull(StateAction, frozen=True, tag="disk-full"):
    """Fails appends with KAFKA_STORAGE_ERROR, as on a full disk."""

    FIELDS: ClassVar[frozenset[str]] = StateAction.FIELDS | {"topic", "partition"}
    PROXY_REFUSAL: ClassVar[str] = "the upstream brokers have the disks. Use error with code KAFKA_STORAGE_ERROR"

    def begin(self, fault: Fault, target: FaultTarget) -> Undo:
        cluster, match = target.cluster, fault.match

        def fails(log_name: str) -> OSError | None:
            topic, _, index = log_name.rpartition("-")
            partition = cluster.metadata.partition(topic, int(index))
            if (
                partition is None
                or not match.hits_partition(topic, int(index))
                or not match.hits_broker(partition.leader)
            ):
                return None
            return OSError(ENOSPC, strerror(ENOSPC), log_name)

        return cluster.logs.fail_appends(fails)
