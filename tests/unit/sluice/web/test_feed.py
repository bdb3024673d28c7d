"""Two snapshots per second while there is a viewer, and none otherwise."""

from itertools import cycle

import pytest

from sluice.protocol.apis.metadata import MetadataRequest
from sluice.web.feed import Feed
from sluice.web.snapshots import Snapshot, SnapshotTaker
from sluice.web.view import View
from tests.support.virtual_broker import VirtualBroker
from tests.support.watching import watching


def _counting(monkeypatch: pytest.MonkeyPatch, *take_ms: float) -> tuple[VirtualBroker, list[float]]:
    """Return a broker and the times of its snapshots, which take `take_ms` in turn."""
    broker = VirtualBroker()
    taken: list[float] = []
    takes = cycle(take_ms or (0.0,))
    take = SnapshotTaker.take

    def counted(self: SnapshotTaker, views: object) -> Snapshot:
        taken.append(broker.now_ms)
        broker.clock.advance(next(takes))
        return take(self, [View()])

    monkeypatch.setattr(SnapshotTaker, "take", counted)
    return broker, taken


def test_without_viewers_no_snapshot_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, taken = _counting(monkeypatch)
    feed = Feed(broker.cluster_server)
    broker.advance(10_000)
    assert taken == []
    with watching(broker, feed=feed):
        broker.advance(10)
        assert len(taken) == 1, "a new viewer gets a snapshot at once"
    broker.advance(10_000)
    assert len(taken) == 1, "no snapshot after the last viewer has left"


def test_all_viewers_share_two_snapshots_per_second(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, taken = _counting(monkeypatch)
    feed = Feed(broker.cluster_server)
    with watching(broker, feed=feed), watching(broker, feed=feed), watching(broker, feed=feed):
        broker.advance(0)
        taken.clear()
        broker.advance(5000)
    assert len(taken) == 10


def test_snapshots_use_at_most_a_twentieth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, taken = _counting(monkeypatch, 100.0)
    with watching(broker):
        broker.advance(20_000)
    assert taken == [0, 2000, 4000, 6000, 8000, 10_000, 12_000, 14_000, 16_000, 18_000, 20_000]


def test_one_slow_snapshot_does_not_delay_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    broker, taken = _counting(monkeypatch, 1.0, 300.0, 1.0, 20.0)
    with watching(broker):
        broker.advance(3000)
    assert taken == [0, 500, 1000, 1500, 2000, 2500, 3000]


RETURNS = {"briefly": (5000, True), "for a long time": (60_000, False)}


@pytest.mark.parametrize(("away_ms", "is_known"), RETURNS.values(), ids=RETURNS)
def test_a_viewer_that_returns_soon_gets_the_history(away_ms: float, is_known: bool) -> None:
    broker = VirtualBroker()
    feed = Feed(broker.cluster_server)
    broker.client("shop").call(MetadataRequest(), 9)
    with watching(broker, feed=feed) as watcher:
        assert watcher.message()["look"] == 0
        watcher.later()
    broker.advance(away_ms)
    with watching(broker, feed=feed) as watcher:
        assert (watcher.message()["look"] > 0) == is_known
