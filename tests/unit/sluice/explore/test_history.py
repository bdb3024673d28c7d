"""What the journal of a run shows."""

import pytest

from sluice.client.consumer import Consumer, OffsetAndMetadata, TopicPartition
from sluice.explore import Run
from sluice.explore.execution import Options, Outcome, Schedule, execute


async def committing(run: Run) -> None:
    """Commit twice, by an application and by the program itself."""
    await run.broker.cluster.create_topic("orders")

    async def commit(client_id: str) -> None:
        config = {"bootstrap.servers": run.broker.bootstrap, "client.id": client_id, "group.id": client_id}
        async with Consumer(config) as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            for offset in (1, 2):
                await consumer.commit({TopicPartition("orders", 0): OffsetAndMetadata(offset)})

    run.start(lambda: commit("shop"))
    await commit("program")
    await run.wait_for(lambda: len(run.broker.journal.requests(client_id="shop", api="OffsetCommit")) == 2)


@pytest.fixture(scope="module")
def outcome() -> Outcome:
    return execute(committing, Schedule(), Options())


def test_points_are_numbered_and_know_what_precedes_them(outcome: Outcome) -> None:
    commits = [each for each in outcome.points if (each.client_id, each.api) == ("shop", "OffsetCommit")]
    assert [(each.nth, each.previous) for each in commits] == [(1, commits[0].previous), (2, "OffsetCommit")]
    assert commits[0].state != commits[1].state
    assert {each.needs for each in commits} == {frozenset({"application"})}
    assert {each.needs for each in outcome.points if each.client_id == "program"} == {frozenset()}
    assert [each.at_s for each in outcome.points] == sorted(each.at_s for each in outcome.points)


def test_another_run_has_the_same_states(outcome: Outcome) -> None:
    assert execute(committing, Schedule(), Options()).states == outcome.states


def test_pairs_are_of_different_clients(outcome: Outcome) -> None:
    assert ("OffsetCommit of shop", "OffsetCommit of program") in outcome.pairs or (
        "OffsetCommit of program",
        "OffsetCommit of shop",
    ) in outcome.pairs
    assert not any(one.endswith("of shop") and other.endswith("of shop") for one, other in outcome.pairs)
