"""Many records through a share group of eight members, in virtual time, while one of three brokers stops.

Members accept most records, release some, and forget others, whose acquisition locks expire. No record is lost: each is
accepted, or was delivered as often as the delivery limit allows. SLUICE_SHARE_RECORDS sets the number of records.
"""

import os
from collections import Counter
from random import Random

from sluice.protocol.apis.share_fetch import PartitionData
from tests.support import share_consumers as share
from tests.support.virtual_broker import VirtualBroker

RECORDS = int(os.environ.get("SLUICE_SHARE_RECORDS", "20000"))
PARTITIONS, MEMBERS, LIMIT, LOCK_MS = 6, 8, 5, 30_000
BATCH = 250
RELEASED, FORGOTTEN = 0.10, 0.05  # shares of the acquired ranges
Record = tuple[int, int]  # partition, offset
Acknowledgements = dict[int, list[share.Acknowledgement]]  # by partition


class Load:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = VirtualBroker("sluice.brokers=3", *share.ONE_PARTITION)
        self.topic = self.cluster.topic("t", PARTITIONS, 3)
        share.initialize(self.cluster, self.topic)
        self.deliveries: Counter[Record] = Counter()
        self.accepted: set[Record] = set()
        self.at_stop: set[Record] = set()  # in flight when the broker stopped
        self.in_flight: set[Record] = set()
        self.members = [f"member-{number}" for number in range(MEMBERS)]
        self.sessions: dict[tuple[str, int], share.ShareConsumer] = {}  # by member and broker
        self.pending: dict[tuple[str, int], Acknowledgements] = {}

    def produce(self) -> None:
        for number in range(RECORDS // BATCH):
            share.produce_values(self.cluster, *[b"x"] * BATCH, partition=number % PARTITIONS)

    def led_by(self, node_id: int) -> list[int]:
        return [partition.index for partition in self.topic.partitions if partition.leader == node_id]

    def poll(self, member: str, node_id: int) -> int:
        """Send one ShareFetch with the pending acknowledgements; return how many records were acquired."""
        key = member, node_id
        session = self.sessions.get(key)
        if session is None:
            session = self.sessions[key] = share.ShareConsumer(self.cluster, self.topic, member)
            session.client = self.cluster.client(member, node_id=node_id)
        acknowledgements = self.pending.pop(key, {})
        led = {index: acknowledgements.get(index, ()) for index in self.led_by(node_id)}
        request = session.request(max_wait_ms=0, topics=session.topics(led))
        response = session.client.call(request, 2)
        if response.error_code:
            del self.sessions[key]
            return 0
        return sum(self.take(key, data, acknowledgements) for one in response.responses for data in one.partitions)

    def take(self, key: tuple[str, int], data: PartitionData, acknowledgements: Acknowledgements) -> int:
        index, acquired = data.partition_index, data.acquired_records
        if index in acknowledgements and not data.acknowledge_error_code:
            for first, last, types in acknowledgements[index]:
                records = {(index, offset) for offset in range(first, last + 1)}
                self.in_flight -= records
                if types == [share.ACCEPT]:
                    self.accepted |= records
        count = 0
        for one in acquired:
            assert one.delivery_count <= LIMIT
            taken = [(index, offset) for offset in range(one.first_offset, one.last_offset + 1)]
            count += len(taken)
            self.deliveries.update(taken)
            self.in_flight.update(taken)
            draw = self.random.random()
            if draw >= FORGOTTEN:
                kind = share.RELEASE if draw < FORGOTTEN + RELEASED else share.ACCEPT
                batch = (one.first_offset, one.last_offset, [kind])
                self.pending.setdefault(key, {}).setdefault(index, []).append(batch)
        return count

    def stop_leader(self) -> None:
        node_id = self.topic.partitions[0].leader
        self.at_stop = set(self.in_flight)
        self.cluster.cluster_server.stop_broker(node_id, controlled=False)
        self.cluster.advance(60_000)  # until its session has expired and the leaders have moved
        for key in [key for key in self.sessions if key[1] == node_id]:
            del self.sessions[key]
            self.pending.pop(key, None)

    def run(self) -> None:
        self.produce()
        idle = 0
        stopped = False
        while idle < 2 * LIMIT:
            acquired = 0
            for member in self.members:
                for node_id in sorted({partition.leader for partition in self.topic.partitions}):
                    acquired += self.poll(member, node_id)
            if not stopped and len(self.accepted) > RECORDS // 2:
                self.stop_leader()
                stopped = True
            idle = 0 if acquired or self.pending else idle + 1
            if not acquired:
                self.cluster.advance(LOCK_MS)
        assert stopped


def test_no_record_is_lost() -> None:
    load = Load(seed=7)
    load.run()
    everything = {
        (partition.index, offset)
        for partition in load.topic.partitions
        for offset in range(partition.log.log_end_offset)
    }
    assert len(everything) == RECORDS
    assert load.deliveries.keys() == everything  # each at least once
    lost = everything - load.accepted
    assert all(load.deliveries[record] >= LIMIT or record in load.at_stop for record in lost)
    for record, count in load.deliveries.items():
        assert count <= LIMIT + (record in load.at_stop), record  # the stopped broker had not stored its last delivery
    assert len(lost) < RECORDS // 100
