"""The reference admin client passes the same tests on our broker in virtual time and on any other broker in real time.

`python -m tests.client_against HOST:PORT` runs the tests on another broker. They use no faults and no journal.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from sluice.client import admin as api
from sluice.client import errors
from tests.support.place import Place, numbers, polling, until

T = TypeVar("T")


async def until_it_is(call: Callable[[], Awaitable[T]], is_so: Callable[[T], bool]) -> T:
    """Repeat a call until its result satisfies `is_so`: brokers apply changes at different times."""
    while not is_so(found := await call()):  # noqa: ASYNC110  (no event exists)
        await asyncio.sleep(0.1)
    return found


class TestAdmin:
    async def test_describe_cluster(self, place: Place) -> None:
        async with place.admin() as admin:
            cluster = await admin.describe_cluster()
            assert place.bootstrap.rpartition(":")[2] in {str(broker.port) for broker in cluster.brokers}

    async def test_topics_and_configs(self, place: Place) -> None:
        topic = api.ConfigResource(api.ResourceType.TOPIC, place.topic)
        async with place.admin() as admin:
            made = await admin.create_topics([api.NewTopic(place.topic, 2, 1, {"retention.ms": "1000"})])
            assert made[place.topic].num_partitions == 2
            assert isinstance(
                (await admin.create_topics([api.NewTopic(place.topic, 2, 1)])).errors()[place.topic],
                errors.TopicExistsException,
            )
            (await admin.create_partitions({place.topic: 3})).all()

            async def partitions() -> int:
                described = await admin.describe_topics([place.topic])
                return 0 if list(described.errors()) else len(described[place.topic].partitions)

            await until_it_is(partitions, lambda found: found == 3)
            changes = [
                api.Alteration("retention.ms", "5000"),
                api.Alteration("cleanup.policy", "compact", api.AlterOperation.APPEND),
            ]
            (await admin.incremental_alter_configs({topic: changes})).all()

            async def configs() -> dict[str, str | None]:
                return {one.name: one.value for one in (await admin.describe_configs([topic]))[topic]}

            await until_it_is(configs, lambda found: found["retention.ms"] == "5000")
            assert (await configs())["cleanup.policy"] == "delete,compact"
            (await admin.delete_topics([place.topic])).all()
            assert list((await admin.delete_topics([f"{place.topic}-never"])).errors())

    async def test_delete_records(self, place: Place) -> None:
        await place.create()
        await place.send(*numbers(5))
        async with place.admin() as admin:
            assert (await admin.delete_records({place[0]: 3})).all() == {place[0]: 3}
            assert (await admin.list_offsets({place[0]: api.EARLIEST}))[place[0]].offset == 3
            assert (await admin.list_offsets({place[0]: api.LATEST}))[place[0]].offset == 5
            outcome = await admin.delete_records({place[0]: 9})
            assert isinstance(outcome.errors()[place[0]], errors.OffsetOutOfRangeException)

    async def test_groups_and_offsets(self, place: Place) -> None:
        await place.create()
        async with place.admin() as admin:
            (await admin.alter_consumer_group_offsets(place.group, {place[0]: api.OffsetAndMetadata(7, "seven")})).all()
            assert (await admin.list_consumer_group_offsets(place.group))[place[0]] == api.OffsetAndMetadata(7, "seven")
            assert place.group in await admin.list_groups()
            async with polling(place) as member:
                await until(lambda: len(member.assignment()) == 1)
                described = (await admin.describe_classic_groups([place.group]))[place.group]
                assert (described.group_state, len(described.members)) == ("Stable", 1)
            (await admin.delete_groups([place.group])).all()
            assert list((await admin.delete_groups([place.group])).errors()) == [place.group]

    async def test_quotas(self, place: Place) -> None:
        entity = api.quota_entity(user=place.topic, client_id="shop")
        async with place.admin() as admin:
            (await admin.alter_client_quotas({entity: {"producer_byte_rate": 1000.0}})).all()
            found = await until_it_is(admin.describe_client_quotas, lambda found: entity in found)
            assert found[entity] == {"producer_byte_rate": 1000.0}
            (await admin.alter_client_quotas({entity: {"producer_byte_rate": None}})).all()
