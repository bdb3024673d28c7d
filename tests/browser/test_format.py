"""Durations on the page are those of `sluice top`."""

from sluice import SyncBroker
from tests.browser.conftest import OpenPage
from tests.unit.sluice.cli.top.test_text import DURATIONS

_FORMAT = "async (all) => { const { milliseconds } = await import('/page/format.js'); return all.map(milliseconds); }"


def test_durations_are_those_of_the_command_line(open_page: OpenPage) -> None:
    with SyncBroker(admin_port=0) as broker:
        assert open_page(broker).evaluate(_FORMAT, list(DURATIONS)) == list(DURATIONS.values())
