"""Random failures of three brokers, under the guarantees of elections.

With clean elections only, no record acknowledged by all in-sync replicas is lost. No epoch has two leaders, and records
that consumers could read never change. Brokers stop, crash, start, are isolated and rejoin in any order; leaders are
moved and elected; producers write with acks=all and acks=1 to any broker. The guarantees are checked after each step.
"""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sluice.broker.controller.controller import ISOLATED, RUNNING, STOPPED
from sluice.broker.controller.elections import Election
from sluice.broker.metadata.new_topic import NewTopic
from sluice.broker.metadata.topic import NO_LEADER
from sluice.protocol.records.record import iter_records
from tests.support.records import batch, produce
from tests.support.virtual_broker import Client, VirtualBroker

NODES = (1, 2, 3)
DELAY_MS = 10  # until followers have appended a record
ELECTION_MS = 100
TIMEOUT_MS = 300  # of produce requests with acks=all
nodes = st.sampled_from(NODES)


class Elections(RuleBasedStateMachine):
    """One partition on three brokers."""

    @initialize(min_isr=st.sampled_from(["1", "2"]), delay_ms=st.sampled_from([0, DELAY_MS]))
    def begin(self, min_isr: str, delay_ms: int) -> None:
        self.cluster = VirtualBroker(
            "sluice.brokers=3",
            f"sluice.replication.delay.ms={delay_ms}",
            f"sluice.election.delay.ms={ELECTION_MS}",
            "replica.lag.time.max.ms=150",
            "leader.imbalance.check.interval.seconds=1",
        )
        configs = {"min.insync.replicas": min_isr}
        self.cluster.cluster.create(NewTopic("t", assignments=((0, NODES),), configs=configs))
        self.partition = self.cluster.partition()
        self.controller = self.cluster.cluster.controller
        self.waiting: list[tuple[Client, bytes]] = []  # pending requests with acks=all
        self.acknowledged: list[bytes] = []
        self.committed: list[bytes] = []  # records that consumers could read so far, in order
        self.leaders: dict[int, int] = {}  # by epoch
        self.written = 0

    @rule(node_id=nodes, acks=st.sampled_from([-1, 1]))
    def write(self, node_id: int, acks: int) -> None:
        if self.controller.state(node_id) is STOPPED:
            return
        self.written += 1
        value = b"%d" % self.written
        client = self.cluster.client(node_id=node_id)
        client.send(produce(9, batch(value), acks=acks, timeout_ms=TIMEOUT_MS), 9)
        if acks == -1:
            self.waiting.append((client, value))

    @rule(ms=st.sampled_from([1, DELAY_MS, ELECTION_MS, TIMEOUT_MS, 1000]))
    def time_passes(self, ms: int) -> None:
        self.cluster.advance(ms)

    @rule(node_id=nodes, controlled=st.booleans())
    def stop(self, node_id: int, controlled: bool) -> None:
        if self.controller.state(node_id) is not STOPPED:
            self.cluster.cluster_server.stop_broker(node_id, controlled=controlled)
            self.cluster.settle()

    @rule(node_id=nodes)
    def start(self, node_id: int) -> None:
        if self.controller.state(node_id) is STOPPED:
            self.cluster.run(self.cluster.cluster_server.start_broker(node_id))

    @rule(node_id=nodes)
    def isolate(self, node_id: int) -> None:
        if self.controller.state(node_id) is RUNNING:
            self.cluster.cluster_server.isolate_broker(node_id)

    @rule(node_id=nodes)
    def rejoin(self, node_id: int) -> None:
        if self.controller.state(node_id) is ISOLATED:
            self.cluster.cluster_server.rejoin_broker(node_id)

    @rule(node_id=nodes)
    def move_leader(self, node_id: int) -> None:
        self.controller.move_leader(self.partition, node_id)

    @precondition(lambda self: self.partition.leader != self.partition.replicas[0])
    @rule()
    def elect(self) -> None:
        self.controller.elect_leader(self.partition, Election.PREFERRED)

    @invariant()
    def acknowledged_records_exist(self) -> None:
        still = []
        for client, value in self.waiting:
            responses = client.take_responses()
            if not responses:
                still.append((client, value))
            elif not responses[0].message.responses[0].partition_responses[0].error_code:
                self.acknowledged.append(value)
        self.waiting = still
        values = self.values(self.partition.log.log_end_offset)
        assert [value for value in self.acknowledged if value not in values] == [], "acknowledged records are lost"
        assert len(set(values)) == len(values), "a record is in the log twice"

    @invariant()
    def committed_records_never_change(self) -> None:
        now = self.values(self.partition.log.high_watermark)
        assert now[: len(self.committed)] == self.committed, "consumers have read other records"
        self.committed = now

    @invariant()
    def epoch_has_one_leader(self) -> None:
        partition = self.partition
        leader = self.leaders.setdefault(partition.leader_epoch, partition.leader)
        assert leader == partition.leader, f"epoch {partition.leader_epoch} had leader {leader}"
        if partition.leader != NO_LEADER:
            assert partition.leader in partition.isr
        assert partition.isr, "the ISR is empty"
        for node_id, broker in self.cluster.cluster_server.brokers.items():
            believed = broker.metadata.partition("t", 0)
            if self.controller.state(node_id) is ISOLATED and believed is not None and broker.replicas.leads(believed):
                assert self.leaders.setdefault(believed.leader_epoch, node_id) == node_id

    def teardown(self) -> None:
        """In the end, with all brokers back, no request is pending."""
        if not hasattr(self, "cluster"):
            return
        for node_id in NODES:
            self.rejoin(node_id)
            self.start(node_id)
        self.cluster.advance(5_000)
        self.acknowledged_records_exist()
        self.committed_records_never_change()
        assert self.waiting == [] or all(not client.is_open for client, _ in self.waiting), (
            "a request was never answered"
        )
        partition = self.partition
        assert (partition.leader, partition.isr) == (1, NODES)
        assert partition.log.high_watermark == partition.log.log_end_offset

    def values(self, up_to: int) -> list[bytes]:
        """Return the values of the records before an offset, in order."""
        log = self.partition.log
        parts = log.read(0, 1 << 30, up_to, min_one_batch=False).parts
        found = []
        for part in parts:
            data = memoryview(part)
            while len(data):
                size = 12 + int.from_bytes(data[8:12])
                found += [record.value or b"" for record in iter_records(data[:size])]
                data = data[size:]
        return found


TestElections = Elections.TestCase
TestElections.settings = settings(max_examples=3 * settings().max_examples // 5, stateful_step_count=40, deadline=None)
