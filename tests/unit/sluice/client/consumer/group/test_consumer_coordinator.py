"""The consumer as a group member, against a real broker in virtual time."""

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from random import Random

import pytest

from sluice.broker.faults.actions.error_response import Error
from sluice.client import errors
from sluice.client.config import consumer_config
from sluice.client.consumer import (
    CommitFailedError,
    Consumer,
    NoSubscriptionError,
    OffsetAndMetadata,
    RebalanceListener,
    TopicPartition,
)
from sluice.client.consumer.group.assignors import ASSIGNORS, Assignor, assign_range
from sluice.client.consumer.group.consumer_coordinator import assignors_of
from sluice.client.consumer.group.group_member import GroupMember
from sluice.client.producer import Producer
from sluice.errors import ConfigError
from tests.support.consuming import P0, TOPIC, Reading, Settings, reading

FOUR: dict[str, str | float] = {"num.partitions": 4, "group.initial.rebalance.delay.ms": 0}
ALL = {TopicPartition(TOPIC, index) for index in range(4)}


class RecordingListener(RebalanceListener):
    """A rebalance listener that records its calls in order."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, set[int]]] = []

    async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("revoked", {partition.partition for partition in partitions}))

    async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("assigned", {partition.partition for partition in partitions}))

    async def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self.calls.append(("lost", {partition.partition for partition in partitions}))


@asynccontextmanager
async def polling(stage: Reading, **config: str | int) -> AsyncIterator[Consumer]:
    """Run another member that polls continuously."""
    given: Settings = {"bootstrap.servers": stage.broker.bootstrap, "group.id": "g"}
    given |= {name.replace("_", "."): value for name, value in config.items()}

    async def poll(consumer: Consumer) -> None:
        while True:
            await consumer.poll(100)

    async with Consumer(given, random=Random(7)) as consumer:
        consumer.subscribe([TOPIC])
        task = asyncio.ensure_future(poll(consumer))
        yield consumer
        task.cancel()
        await asyncio.wait([task])


async def until_assigned(consumer: Consumer, count: int) -> None:
    for _ in range(200):
        await consumer.poll(100)
        if len(consumer.assignment()) == count:
            return
    raise AssertionError(f"{len(consumer.assignment())} partitions, not {count}")


async def join(consumer: Consumer, listener: RebalanceListener | None = None) -> None:
    """Subscribe to the topic, and wait for its four partitions."""
    consumer.subscribe([TOPIC], listener=listener)
    await until_assigned(consumer, 4)


REVOCATIONS = [
    ("range", [("assigned", {0, 1, 2, 3}), ("revoked", {0, 1, 2, 3}), ("assigned", {0, 1})]),
    ("cooperative-sticky", [("assigned", {0, 1, 2, 3}), ("revoked", {2, 3}), ("assigned", set())]),
]


class TestMembers:
    async def test_lone_member_owns_all_partitions(self) -> None:
        async with reading({"group.id": "g"}, broker_config=FOUR) as stage:
            listener = RecordingListener()
            stage.consumer.subscribe([TOPIC], listener=listener)
            await stage.deliver(b"a", partition=3)
            assert stage.consumer.assignment() == ALL
            assert listener.calls == [("assigned", {0, 1, 2, 3})]
            assert stage.consumer.group_metadata()[:2] == ("g", 1)

    @pytest.mark.parametrize("assignor", ["range", "roundrobin", "cooperative-sticky"])
    async def test_members_share_partitions_and_take_over_those_of_a_leaving_member(self, assignor: str) -> None:
        async with reading({"group.id": "g", "partition.assignment.strategy": assignor}, broker_config=FOUR) as stage:
            await join(stage.consumer)
            async with polling(stage, partition_assignment_strategy=assignor) as other:
                await until_assigned(stage.consumer, 2)
                for _ in range(100):
                    await stage.consumer.poll(100)
                    if len(other.assignment()) == 2:
                        break
                assert other.assignment() | stage.consumer.assignment() == ALL
            await until_assigned(stage.consumer, 4)

    @pytest.mark.parametrize(("assignor", "expected"), REVOCATIONS)
    async def test_rebalance_revokes_all_or_only_moving_partitions(
        self, assignor: str, expected: list[tuple[str, set[int]]]
    ) -> None:
        async with reading({"group.id": "g", "partition.assignment.strategy": assignor}, broker_config=FOUR) as stage:
            listener = RecordingListener()
            await join(stage.consumer, listener)
            async with polling(stage, partition_assignment_strategy=assignor):
                await until_assigned(stage.consumer, 2)
                kinds = [(kind, len(partitions)) for kind, partitions in listener.calls[:3]]
                assert kinds == [(kind, len(partitions)) for kind, partitions in expected]

    async def test_failed_commit_before_a_rebalance_is_repeated(self) -> None:
        settings: Settings = {"group.id": "g", "auto.commit.interval.ms": 600_000}
        async with reading(settings, broker_config=FOUR) as stage:
            await join(stage.consumer)
            await stage.produce(b"a")
            await stage.read(1)
            stage.broker.faults.add(Error("COORDINATOR_LOAD_IN_PROGRESS"), api="OffsetCommit", times=1)
            async with polling(stage):
                await until_assigned(stage.consumer, 2)
                assert await stage.consumer.committed([P0]) == {P0: OffsetAndMetadata(1, "", 0)}

    async def test_member_that_does_not_poll_leaves_the_group(self) -> None:
        config: Settings = {"group.id": "g", "max.poll.interval.ms": 10_000, "session.timeout.ms": 6000}
        async with reading({**config, "enable.auto.commit": "false"}, broker_config=FOUR) as stage:
            listener = RecordingListener()
            await join(stage.consumer, listener)
            await asyncio.sleep(20)
            assert len(stage.requests("LeaveGroup")) == 1
            with pytest.raises(CommitFailedError, match="not a member of the group"):
                await stage.consumer.commit({P0: OffsetAndMetadata(0)})
            await until_assigned(stage.consumer, 4)
            assert [kind for kind, _ in listener.calls] == ["assigned", "lost", "assigned"]

    @pytest.mark.parametrize("api", ["JoinGroup", "SyncGroup"])
    async def test_member_that_learns_of_its_removal_when_it_joins_starts_at_committed_offsets(self, api: str) -> None:
        # As in Kafka's AbstractCoordinator.resetStateAndRejoin. With a position from before, what another member has
        # committed meanwhile would be processed twice.
        cooperative: Settings = {"partition.assignment.strategy": "cooperative-sticky", "session.timeout.ms": 6000}
        given: Settings = {"group.id": "g", "client.id": "first", "enable.auto.commit": False, **cooperative}
        async with reading(given, broker_config=FOUR) as stage:
            listener = RecordingListener()
            await join(stage.consumer, listener)
            await stage.deliver(b"a", partition=0)
            assert await stage.consumer.position(P0) == 1
            stage.broker.faults.add(Error("UNKNOWN_MEMBER_ID"), api=api, client_id="first", times=1)
            async with polling(stage, partition_assignment_strategy="cooperative-sticky", session_timeout_ms=6000):
                await until_assigned(stage.consumer, 2)
            await until_assigned(stage.consumer, 4)
            assert ("lost", {0, 1, 2, 3}) in listener.calls
            assert [each.value for each in await stage.consumer.poll(1000)] == [b"a"]

    async def test_removed_member_cannot_commit_offsets_in_a_transaction(self) -> None:
        config: Settings = {"group.id": "g", "max.poll.interval.ms": 10_000, "session.timeout.ms": 6000}
        async with reading(config, broker_config=FOUR) as stage:
            await join(stage.consumer)
            joined = stage.consumer.group_metadata()
            await asyncio.sleep(20)
            assert stage.consumer.group_metadata() == joined
            given = {"bootstrap.servers": stage.broker.bootstrap, "transactional.id": "t"}
            async with Producer(given) as producer:
                await producer.init_transactions()
                producer.begin_transaction()
                with pytest.raises(errors.UnknownMemberIdException):
                    await producer.send_offsets_to_transaction({P0: 1}, stage.consumer.group_metadata())
                await producer.abort_transaction()

    async def test_commit_while_the_join_waits_for_another_member_fails_at_once(self) -> None:
        cooperative: Settings = {"group.id": "g", "partition.assignment.strategy": "cooperative-sticky"}
        async with reading(cooperative, broker_config=FOUR) as stage:
            consumer = stage.consumer
            await join(consumer)
            async with Consumer({**cooperative, "bootstrap.servers": stage.broker.bootstrap}) as slow:
                slow.subscribe([TOPIC])
                await asyncio.gather(until_assigned(consumer, 2), until_assigned(slow, 2))
                async with polling(stage, partition_assignment_strategy="cooperative-sticky"):
                    await consumer.poll(10_000)
                    assert consumer.is_rebalancing
                    began_ms, (first, *_) = stage.now_ms, sorted(consumer.assignment())
                    with pytest.raises(errors.RebalanceInProgressException):
                        await consumer.commit({first: OffsetAndMetadata(0)})
                    assert stage.now_ms == began_ms
                    for _ in range(50):
                        await asyncio.gather(consumer.poll(100), slow.poll(100))
                    await consumer.commit({first: OffsetAndMetadata(0)})

    async def test_heartbeats_are_sent_between_polls(self) -> None:
        async with reading({"group.id": "g"}, broker_config=FOUR) as stage:
            await join(stage.consumer)
            await asyncio.sleep(31)
            assert 9 <= len(stage.requests("Heartbeat")) <= 11

    async def test_pattern_subscription_includes_new_topics(self) -> None:
        async with reading({"group.id": "g", "metadata.max.age.ms": 2000}, broker_config=FOUR) as stage:
            await stage.broker.cluster.create_topic("orders-1", 1)
            await stage.broker.cluster.create_topic("payments", 1)
            stage.consumer.subscribe(re.compile("orders-.*"))
            await until_assigned(stage.consumer, 1)
            assert stage.consumer.subscription() == {"orders-1"}
            await stage.broker.cluster.create_topic("orders-2", 2)
            await until_assigned(stage.consumer, 3)

    async def test_unsubscribe_leaves_the_group(self) -> None:
        async with reading({"group.id": "g"}, broker_config=FOUR) as stage:
            listener = RecordingListener()
            await join(stage.consumer, listener)
            await stage.consumer.unsubscribe()
            assert stage.consumer.assignment() == set()
            assert listener.calls[-1] == ("revoked", {0, 1, 2, 3})
            assert len(stage.requests("LeaveGroup")) == 1
            stage.consumer.assign([P0])
            await stage.deliver(b"v")

    async def test_member_survives_a_coordinator_move(self) -> None:
        config: dict[str, str | float] = {**FOUR, "sluice.brokers": 3, "default.replication.factor": 3}
        async with reading({"group.id": "g", "auto.offset.reset": "earliest"}, broker_config=config) as stage:
            await join(stage.consumer)
            for node in (1, 2):
                await stage.broker.cluster.stop(node)
                await asyncio.sleep(1)
                await stage.deliver(b"v")
                await stage.broker.cluster.start(node)
                await stage.consumer.poll(1000)


class TestCommits:
    async def test_assignment_that_changes_during_the_lookup_starts_at_committed_offsets(self) -> None:
        async with reading({"group.id": "g", "client.id": "late"}, broker_config=FOUR) as stage:
            for index in range(4):
                await stage.produce(b"old", partition=index)
            async with polling(stage, client_id="early", enable_auto_commit="false") as early:
                await asyncio.sleep(10)  # it has joined
                await early.commit(dict.fromkeys(ALL, OffsetAndMetadata(1)))
                loading = Error("COORDINATOR_LOAD_IN_PROGRESS")
                stage.broker.faults.add(loading, api="OffsetFetch", client_id="late")
                stage.consumer.subscribe([TOPIC])
                await until_assigned(stage.consumer, 2)
            await until_assigned(stage.consumer, 4)
            stage.broker.faults.clear()
            assert [await stage.consumer.position(partition) for partition in sorted(ALL)] == [1, 1, 1, 1]

    @pytest.mark.parametrize("manual", [True, False], ids=["manual assignment", "in a group"])
    async def test_auto_commit_runs_by_interval_and_on_close(self, manual: bool) -> None:
        async with reading({"group.id": "g"}, broker_config={"group.initial.rebalance.delay.ms": 0}) as stage:
            await stage.produce(b"a", b"b")
            if manual:
                stage.consumer.assign([P0])
            else:
                stage.consumer.subscribe([TOPIC])
            await stage.read(2)
            assert stage.requests("OffsetCommit") == []
            await stage.consumer.poll(6000)
            assert await stage.consumer.committed([P0]) == {P0: OffsetAndMetadata(2, "", 0)}
            await stage.produce(b"c")
            await stage.read(1)
            commits = len(stage.requests("OffsetCommit"))
            await stage.consumer.close()
            assert len(stage.requests("OffsetCommit")) == commits + 1
            async with Consumer({"bootstrap.servers": stage.broker.bootstrap, "group.id": "g"}) as other:
                assert await other.committed([P0]) == {P0: OffsetAndMetadata(3, "", 0)}

    @pytest.mark.parametrize(("code", "repeated_after_ms"), [("REQUEST_TIMED_OUT", 100), ("INVALID_GROUP_ID", 5000)])
    async def test_failed_auto_commit_is_logged_and_repeated_after_the_backoff_or_the_interval(
        self, caplog: pytest.LogCaptureFixture, code: str, repeated_after_ms: int
    ) -> None:
        async with reading({"group.id": "g", "fetch.max.wait.ms": 10}) as stage:
            await stage.produce(b"a")
            stage.consumer.assign([P0])
            await stage.read(1)
            stage.broker.faults.add(Error(code), api="OffsetCommit", times=1)
            await stage.consumer.poll(12_000)
            first, second, *_ = stage.request_times_ms("OffsetCommit")
            assert second - first == pytest.approx(repeated_after_ms, rel=0.25)
            assert "automatic commit failed" in caplog.text

    async def test_asynchronous_commits_do_not_block(self) -> None:
        async with reading({"group.id": "g"}) as stage:
            stage.consumer.assign([P0])
            task = stage.consumer.commit_later({P0: OffsetAndMetadata(5, "mine")})
            assert not task.done()
            await task
            assert await stage.consumer.committed([P0]) == {P0: OffsetAndMetadata(5, "mine")}

    async def test_commit_requires_a_group(self) -> None:
        async with reading() as stage:
            stage.consumer.assign([P0])
            with pytest.raises(NoSubscriptionError, match=r"^cannot commit: group.id is not set$"):
                await stage.consumer.commit()
            with pytest.raises(NoSubscriptionError, match=r"^cannot subscribe: group.id is not set$"):
                stage.consumer.subscribe([TOPIC])


async def test_subscribing_and_assigning_exclude_each_other() -> None:
    async with reading({"group.id": "g"}) as stage:
        stage.consumer.subscribe([TOPIC])
        with pytest.raises(errors.KafkaException, match="exclude each other"):
            stage.consumer.assign([P0])


UNSUPPORTED = [
    ({"partition.assignment.strategy": "range,mine"}, "partition.assignment.strategy: expected one of range, "),
    ({"group.protocol": "consumer"}, "group.protocol=consumer: this client speaks the classic protocol only"),
]


@pytest.mark.parametrize(("config", "problem"), UNSUPPORTED)
def test_unsupported_setting_is_rejected(config: Settings, problem: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(problem)):
        Consumer({"bootstrap.servers": "a:1", "group.id": "g", **config})


def test_assignors_can_be_named_by_javas_classes() -> None:
    classes = ("RangeAssignor", "RoundRobinAssignor", "StickyAssignor", "CooperativeStickyAssignor")
    names = ",".join(f"org.apache.kafka.clients.consumer.{name}" for name in classes)
    config = consumer_config({"bootstrap.servers": "a:1", "partition.assignment.strategy": names})
    assert [assignor.name for assignor in assignors_of(config)] == [*ASSIGNORS]


async def test_listener_can_commit_revoked_partitions_on_close() -> None:
    class Committing(RebalanceListener):
        def __init__(self, consumer: Consumer) -> None:
            self.consumer = consumer

        async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
            await self.consumer.commit({P0: OffsetAndMetadata(1, "by the listener")})

    async with reading({"group.id": "g", "enable.auto.commit": "false"}, broker_config=FOUR) as stage:
        await join(stage.consumer, Committing(stage.consumer))
        await stage.consumer.close()
        async with Consumer({"bootstrap.servers": stage.broker.bootstrap, "group.id": "g"}) as other:
            assert await other.committed([P0]) == {P0: OffsetAndMetadata(1, "by the listener")}


async def test_custom_assignor_prepares_before_assigning() -> None:
    async with reading(
        broker_config={"group.initial.rebalance.delay.ms": 0, "auto.create.topics.enable": "false"}
    ) as stage:
        prepared: list[list[GroupMember]] = []

        async def prepare(members: Sequence[GroupMember]) -> Mapping[str, int]:
            prepared.append(list(members))
            assert consumer.is_rebalancing
            if len(prepared) == 1:
                raise errors.TimeoutException("the leader exceeds its time limit")
            await stage.broker.cluster.create_topic("made", 2)
            return {"made": 2}

        mine = Assignor("mine", assign_range, is_cooperative=True, prepare=prepare)
        given: Settings = {"bootstrap.servers": stage.broker.bootstrap, "group.id": "g"}
        async with Consumer(given, assignors=[mine], random=Random(1)) as consumer:
            consumer.subscribe(["made"])
            await until_assigned(consumer, 2)
            await consumer.poll(5000)
            assert not consumer.is_rebalancing
        assert [len(members) for members in prepared] == [1, 1], "one retry after a retriable error, and none later"
        assert prepared[0][0].topics == {"made"}
