"""A viewer of the web page's stream in virtual time: the messages as the page's script receives them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from sluice.web.feed import EVERY_MS, Feed
from sluice.web.view import View
from sluice.web.viewer import Viewer
from tests.support.virtual_broker import VirtualBroker


class Watcher:
    """One viewer; its first update is read at once."""

    def __init__(self, broker: VirtualBroker, feed: Feed, viewer: Viewer) -> None:
        self._broker = broker
        self._feed = feed
        self._viewer = viewer

    def message(self) -> Any:
        """Return the changes of the newest update."""
        self._broker.settle()
        assert self._feed.newest is not None
        return json.loads(self._viewer.message(self._feed.newest))

    def later(self, ms: float = EVERY_MS) -> Any:
        """Advance the time and return the changes."""
        self._broker.advance(ms)
        return self.message()


@contextmanager
def watching(broker: VirtualBroker, view: View | None = None, feed: Feed | None = None) -> Iterator[Watcher]:
    """Open a stream for the duration of the block."""
    feed = feed or Feed(broker.cluster_server)
    with feed.watching(view or View()) as viewer:
        yield Watcher(broker, feed, viewer)
