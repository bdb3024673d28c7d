"""The synchronous broker has the members of the asynchronous one, usable from any thread."""

import asyncio
import inspect
import math
import re
import timeit
from concurrent.futures import ThreadPoolExecutor
from threading import Thread

import pytest
from aiokafka import AIOKafkaProducer

from sluice import Broker, SyncBroker
from sluice.broker.journal.reader import JournalReader
from sluice.embedded import sync_handles
from sluice.embedded.client import LocalClient
from sluice.embedded.cluster_control import ClusterControl
from sluice.embedded.fault_control import LocalFault, LocalFaults
from sluice.embedded.quota_control import LocalQuota
from sluice.embedded.scenario_control import LocalScenario
from sluice.errors import ConfigError, SluiceError
from sluice.journal_events import LeaderChange, Request
from tests.support.local_broker import send_metadata

TWINS: dict[type, type] = {
    Broker: SyncBroker,
    ClusterControl: sync_handles.SyncClusterControl,
    JournalReader: sync_handles.SyncJournal,
    LocalFault: sync_handles.SyncFault,
    LocalFaults: sync_handles.SyncFaults,
    LocalClient: sync_handles.SyncClient,
    LocalQuota: sync_handles.SyncQuota,
    LocalScenario: sync_handles.SyncScenario,
}
# Members for servers of a journal and for the exact simulation of fleets, which tests do not use.
NOT_FOR_TESTS: dict[type[object], set[str]] = {JournalReader: {"before_last", "read", "received", "wait"}}


# -- equality of both --------------------------------------------------------------------------------------------------


def members(of: type[object]) -> dict[str, object]:
    public = {name: value for name, value in vars(of).items() if not name.startswith("_") or name == "__init__"}
    return {name: value for name, value in public.items() if name not in NOT_FOR_TESTS.get(of, set())}


def shape(member: object) -> str:
    """Return a member's interface, except for whether it blocks: its parameters and return type."""
    if isinstance(member, property):
        return f"property {shape(member.fget)}"
    assert callable(member)
    parts = str(inspect.signature(member)).replace("AsyncIterator", "Iterator").replace("'", "")
    for one, twin in TWINS.items():
        parts = re.sub(rf"\b({one.__module__}\.)?{one.__name__}\b", twin.__name__, parts)
    return parts.replace("sluice.embedded.sync_handles.", "")


@pytest.mark.parametrize(("one", "twin"), TWINS.items(), ids=[one.__name__ for one in TWINS])
def test_both_brokers_have_equal_members_signatures_and_docstrings(one: type, twin: type) -> None:
    found = {name: (shape(member), member.__doc__) for name, member in members(twin).items()}
    expected = {name: (shape(member), member.__doc__) for name, member in members(one).items()}
    if one is not Broker:  # the constructor of a handle is not public
        expected.pop("__init__", None)
    assert found == expected
    for name, member in members(twin).items():
        assert not inspect.iscoroutinefunction(member), name


# -- behaviour ---------------------------------------------------------------------------------------------------------


def test_brokers_stop_start_and_move_leaders() -> None:
    with SyncBroker(3, admin_port=0) as broker:
        cluster = broker.cluster
        assert list(broker.brokers) == [1, 2, 3]
        assert broker.bootstrap == ",".join(broker.brokers.values())
        assert str(broker.admin).startswith("http://127.0.0.1:")
        cluster.create_topic("t", assignments={0: [1, 2, 3]})
        cluster.stop(1)
        (moved,) = broker.wait_for(LeaderChange, broker=2)
        assert (moved.before, cluster.partition("t", 0).leader) == (1, 2)
        cluster.start(1)
        cluster.elect("t", 0)
        assert cluster.partition("t", 0).leader == 1
        cluster.isolate(2)
        cluster.rejoin(2)
        cluster.move_leader("t", 0, 3)
        assert cluster.partition("t", 0).leader == 3
        with pytest.raises(SluiceError, match="there is no broker 4"):
            cluster.stop(4)
    with pytest.raises(ConnectionRefusedError):
        send_metadata(broker.brokers[1], "late")


def test_quotas_and_journal_are_available() -> None:
    with SyncBroker() as broker:
        with broker.quota(client_id="shop", request_percentage=50) as quota:
            send_metadata(broker.bootstrap, "shop")
        quota.remove()
        (request,) = broker.wait_for(Request, client_id="shop")
        assert broker.journal.requests(api="Metadata") == [request]
        assert broker.journal.last_seq >= request.seq
        assert broker.wait_for(lambda: broker.journal.events(kind="connection-closed"))


def test_follower_receives_events_until_the_broker_ends() -> None:
    with ThreadPoolExecutor(1) as pool:
        with SyncBroker() as broker:
            send_metadata(broker.bootstrap, "early")
            broker.wait_for(Request)
            following = pool.submit(lambda: [each.client_id for each in broker.journal.follow(after=0, kind="request")])  # type: ignore[union-attr]  # it is a request
            send_metadata(broker.bootstrap, "late")
        assert following.result(10) == ["early", "late"]


def test_follower_from_now_receives_no_earlier_events() -> None:
    with SyncBroker() as broker:
        send_metadata(broker.bootstrap, "early")
        broker.wait_for(Request)
        following = broker.journal.follow(after=broker.journal.last_seq, kind="request")
        send_metadata(broker.bootstrap, "late")
        request = next(following)
        assert isinstance(request, Request)
        assert request.client_id == "late"


def test_without_events_there_is_no_journal() -> None:
    with SyncBroker(config={"sluice.journal.events": 0}) as broker:
        with pytest.raises(ConfigError, match="there is no journal"):
            _ = broker.journal
        with pytest.raises(TimeoutError, match="no journal to show events from"):
            broker.wait_for(lambda: False, timeout_s=0)


# -- threads and loops -------------------------------------------------------------------------------------------------


def test_several_brokers_run_at_once_and_any_thread_may_use_them() -> None:
    with SyncBroker() as one, SyncBroker() as other, ThreadPoolExecutor(8) as pool:
        assert one.bootstrap != other.bootstrap

        def create(number: int) -> int:
            broker = (one, other)[number % 2]
            broker.cluster.create_topic(f"t{number}")
            return broker.cluster.partition(f"t{number}", 0).leader

        assert list(pool.map(create, range(40))) == [1] * 40
        with pytest.raises(SluiceError, match="there is no topic t1"):
            one.cluster.partition("t1", 0)


async def test_broker_runs_beside_a_running_event_loop() -> None:
    with SyncBroker() as broker:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            record = await producer.send_and_wait("t", b"v")
    assert int(record.offset) == 0


def test_broker_is_usable_while_running_and_readable_afterwards() -> None:
    broker = SyncBroker()
    with pytest.raises(SluiceError, match="a broker is available only within `with`"):
        _ = broker.bootstrap
    with broker:
        cluster, address = broker.cluster, broker.bootstrap
        send_metadata(address, "shop")
    assert broker.bootstrap == address
    assert [each.client_id for each in broker.journal.requests()] == ["shop"]
    with pytest.raises(SluiceError, match="the broker has stopped"):
        cluster.stop(1)


def test_start_and_stop_take_as_long_as_in_any_thread() -> None:
    """If a thread waited for a timer, each run would take dozens of times as long. On a busy machine some runs do."""

    async def asynchronous() -> None:
        async with Broker():
            pass

    def in_a_thread() -> None:
        thread = Thread(target=lambda: asyncio.run(asynchronous()))
        thread.start()
        thread.join()

    def synchronous() -> None:
        with SyncBroker():
            pass

    shortest = reference = math.inf
    for _ in range(300):
        shortest, reference = (
            min(before, timeit.timeit(run, number=1))
            for before, run in ((shortest, synchronous), (reference, in_a_thread))
        )
        if shortest < 10 * reference:
            return
    pytest.fail(f"the shortest of 300 runs took {shortest:.4f} s, and {reference:.4f} s in a thread")


# -- test frameworks ---------------------------------------------------------------------------------------------------
