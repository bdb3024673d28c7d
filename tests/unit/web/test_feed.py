"""The cluster is looked at twice a second while somebody watches, and not at all while nobody does."""

from itertools import cycle

import pytest

from sluice.protocol.apis.metadata import MetadataRequest
from sluice.web.feed import Feed
from sluice.web.snapshots import Snapshot, SnapshotTaker
from sluice.web.view import View
from tests.support.virtual_broker import VirtualBroker
from tests.support.watching import watching


def _count(monkeypatch: pytest.MonkeyPatch, broker: VirtualBroker, *take_ms: float) -> list[float]:
    """When the cluster was looked at, from now on; looks take so long in turn."""
    looked: list[float] = []
    takes = cycle(take_ms or (0.0,))
    take = SnapshotTaker.take

    def counted(self: SnapshotTaker, views: object) -> Snapshot:
        looked.append(broker.now_ms)
        broker.clock.advance(next(takes))
        return take(self, [View()])

    monkeypatch.setattr(SnapshotTaker, "take", counted)
    return looked


def test_nobody_watches_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    looked = _count(monkeypatch, broker)
    feed = Feed(broker.cluster_server)
    broker.advance(10_000)
    assert looked == []
    with watching(broker, feed=feed):
        broker.advance(10)
        assert len(looked) == 1, "who comes does not wait"
    broker.advance(10_000)
    assert len(looked) == 1, "nor is anything done when the last one has left"


def test_all_who_watch_share_two_looks_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    looked = _count(monkeypatch, broker)
    feed = Feed(broker.cluster_server)
    with watching(broker, feed=feed), watching(broker, feed=feed), watching(broker, feed=feed):
        broker.advance(0)
        looked.clear()
        broker.advance(5000)
    assert len(looked) == 10


def test_looks_take_a_twentieth_of_the_time_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    looked = _count(monkeypatch, broker, 100.0)
    with watching(broker):
        broker.advance(20_000)
    assert looked == [0, 2000, 4000, 6000, 8000, 10_000, 12_000, 14_000, 16_000, 18_000, 20_000]


def test_a_look_that_had_to_wait_for_a_processor_puts_off_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    broker = VirtualBroker()
    looked = _count(monkeypatch, broker, 1.0, 300.0, 1.0, 20.0)
    with watching(broker):
        broker.advance(3000)
    assert looked == [0, 500, 1000, 1500, 2000, 2500, 3000]


@pytest.mark.parametrize(
    ("away_ms", "is_known"), [pytest.param(5000, True, id="a moment"), pytest.param(60_000, False, id="long")]
)
def test_who_is_back_at_once_finds_the_last_two_minutes(away_ms: float, is_known: bool) -> None:
    broker = VirtualBroker()
    feed = Feed(broker.cluster_server)
    broker.client("shop").ask(MetadataRequest(), 9)
    with watching(broker, feed=feed) as watcher:
        assert watcher.message()["look"] == 0
        watcher.later()
    broker.advance(away_ms)
    with watching(broker, feed=feed) as watcher:
        assert (watcher.message()["look"] > 0) == is_known
