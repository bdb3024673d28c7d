"""One Chromium for all tests of the page (mark `browser`), from SLUICE_CHROMIUM or PATH.

Without one these tests are skipped.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

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

_SIZE: ViewportSize = {"width": 1400, "height": 1000}

Scheme = Literal["light", "dark"]
NewPage = Callable[..., Page]
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


@pytest.fixture(scope="package")
def tab(chromium: Browser) -> Page:
    """The page that most tests share: a browser context starts processes, which takes longer than a test."""
    return chromium.new_context().new_page()


@pytest.fixture
def new_page(chromium: Browser, tab: Page) -> Iterator[NewPage]:
    """Return the shared page, with a size and a colour scheme; with other options, the page of a new context."""
    with ExitStack() as stack:

        def new(viewport: ViewportSize = _SIZE, color_scheme: Scheme = "light", **options: object) -> Page:
            if not options:
                tab.set_viewport_size(viewport)
                tab.emulate_media(color_scheme=color_scheme)
                return tab
            context = chromium.new_context(viewport=viewport, color_scheme=color_scheme, **options)  # type: ignore[arg-type]  # any option
            stack.callback(context.close)
            return context.new_page()

        yield new
        tab.goto("about:blank")


@contextmanager
def listening(page: Page, **listeners: Callable[..., object]) -> Iterator[None]:
    """Call functions for events of a page, which other tests use later."""
    for event, listener in listeners.items():
        page.on(event, listener)  # type: ignore[call-overload]  # any event
    yield
    for event, listener in listeners.items():
        page.remove_listener(event, listener)


@pytest.fixture
def open_page(new_page: NewPage) -> Iterator[OpenPage]:
    """Open the page of a broker, with options of `new_page`.

    Fails at the end if a script raised an error or the security policy blocked anything.
    """
    problems: list[str] = []
    with ExitStack() as stack:

        def opened(broker: SyncBroker, **options: object) -> Page:
            page = new_page(**options)
            page.set_default_timeout(_TIMEOUT_MS)
            stack.enter_context(
                listening(
                    page,
                    pageerror=lambda error: problems.append(str(error)),
                    dialog=lambda dialog: problems.append(f"a dialog: {dialog.message}"),
                    console=lambda message: _note(problems, message.type, message.text),
                )
            )
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
