"""Tests of accept queues, and of connection attempts that find one full."""

import numpy as np
import pytest
from msgspec.structs import replace

from sluice.fleet.models.client_model import ClientModel, Group
from sluice.fleet.simulation.accept_queue import AcceptQueue
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.counters import Count
from sluice.fleet.simulation.engine import Simulation, simulate
from tests.support.fleet_simulation import FAST, schedule_with


@pytest.mark.parametrize("backlog", [0, 1, 5])
def test_a_queue_has_room_for_one_more_than_its_backlog(backlog: int) -> None:
    queue = AcceptQueue(1e9, backlog)
    queue.begin_window()
    assert queue.admit(np.zeros(20, dtype=np.int64)).sum() == backlog + 1


@pytest.mark.parametrize("load", [0.2, 0.95, 2.0])
def test_windows_and_calls_do_not_change_which_connections_find_room(load: float) -> None:
    times = np.random.default_rng(3).integers(0, 100_000, int(load * 1000)).astype(np.int64)  # accepted in 100 µs
    one_by_one, free_us = [], 0.0
    for time in np.sort(times).tolist():
        one_by_one.append(free_us - time <= 300)
        free_us = max(free_us, time) + 100 if one_by_one[-1] else free_us
    queue, found = AcceptQueue(100, 3), []
    for window in np.array_split(np.sort(times), 7):
        queue.begin_window()
        found += [*queue.admit(window[: len(window) // 2]), *queue.admit(window[len(window) // 2 :])]
    assert found == one_by_one
    assert all(found) == (load == 0.2)


def _run(model: ClientModel, broker: BrokerModel, clients: int = 20) -> Simulation:
    schedule = schedule_with({"at": "1s", "kill": 1, "during": "1s"}, duration="16s")
    return simulate([Group("test", model, clients)], schedule, broker, seed=1)


# All clients lose their connections at 1 s; they try it again at the same time.
_SAME = ClientModel(reconnect_backoff_ms=1500, reconnect_backoff_max_ms=1500)


def test_clients_repeat_dropped_syns_as_linux_does() -> None:
    """One of 20 is accepted at each time: after 0, 1, 2, 3, 4, 5 and 7 s; the setup times out after 10 s."""
    model = replace(_SAME, socket_connection_setup_timeout_max_ms=10_000)
    run = _run(model, replace(FAST, backlog=0, accept_us=10_000))
    dropped = run.counts[:, Count.DROPPED_SYNS]
    assert {int(at) / 10 - 2.5: int(dropped[at]) for at in np.flatnonzero(dropped[:120])} == {
        0: 19, 1: 18, 2: 17, 3: 16, 4: 15, 5: 14, 7: 13,
    }  # fmt: skip
    assert run.counts[20:120, Count.CONNECTIONS].sum() == 20
    assert run.counts[125, Count.REQUEST_TIMEOUTS] == 13


def test_a_longer_setup_timeout_repeats_the_syn_once_more() -> None:
    runs = [
        _run(
            replace(_SAME, socket_connection_setup_timeout_ms=ms, socket_connection_setup_timeout_max_ms=ms),
            replace(FAST, backlog=0, accept_us=10_000),
        )
        for ms in (10_000, 40_000)
    ]
    assert [bool(run.counts[135, Count.DROPPED_SYNS]) for run in runs] == [False, True]
    assert [bool(run.counts[125, Count.REQUEST_TIMEOUTS]) for run in runs] == [True, False]


def test_a_backlog_for_all_clients_drops_nothing() -> None:
    run = _run(_SAME, replace(FAST, backlog=20, accept_us=10_000))
    assert not run.counts[:, Count.DROPPED_SYNS].any()
    assert run.counts[30:, Count.COMPLETED].sum() > 0
    assert BrokerModel(produce_us=1, metadata_us=1, connection_us=1, backlog=7).scaled_to(1000).backlog == 7


def test_the_connections_of_a_stopped_broker_break_one_by_one() -> None:
    """Each client connects again 1.5 s after its own connection has broken."""
    run = _run(_SAME, replace(FAST, close_us=100_000))
    assert run.counts[25:45, Count.CONNECTIONS].tolist() == [1] * 20
