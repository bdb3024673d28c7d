"""One Chromium for all tests of the page (mark `browser`), from SLUICE_CHROMIUM or PATH.

Without one these tests are skipped.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sluice import SyncBroker
from tests.support import skips
from tests.support.wire import WireClient

_HERE = Path(__file__).parent
_CHROMIUM = os.environ.get("SLUICE_CHROMIUM") or shutil.which("chromium")
_MISSING = skips.program("Chromium", "apt-get install chromium, or set SLUICE_CHROMIUM to its path")
# Prevent network requests by the browser itself.
_FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
# Generous, as the first connection to an admin port loads the HTTP stack, possibly on a busy machine.
_TIMEOUT_MS = 30_000

OpenPage = Callable[..., Page]
Connect = Callable[[SyncBroker, str], WireClient]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if not _CHROMIUM:
                item.add_marker(pytest.mark.skip(reason=_MISSING))


# Package scope, not session: its event loop in this thread would break other tests.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=_TIMEOUT_MS)
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """Open the page of a broker in a new browser context with these Playwright options.

    Fails at the end if a script raised an error or the security policy blocked anything.
    """
    problems: list[str] = []
    with ExitStack() as stack:

        def opened(broker: SyncBroker, **options: object) -> Page:
            context = chromium.new_context(**{"viewport": {"width": 1400, "height": 1000}, **options})  # type: ignore[arg-type]  # any option
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(_TIMEOUT_MS)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
            page.on("console", lambda message: _note(problems, message.type, message.text))
            assert broker.admin is not None
            page.goto(broker.admin)
            return page

        yield opened
    assert problems == []


def _note(problems: list[str], kind: str, text: str) -> None:
    # Some tests expect rejected requests, or stop the broker.
    if kind == "error" and not text.startswith("Failed to load resource"):
        problems.append(text)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connect clients with a given id until the end of the test."""
    with ExitStack() as stack:
        yield lambda broker, client_id: stack.enter_context(WireClient(broker.bootstrap.split(",")[0], client_id))
