"""One Chromium for all tests of the page (mark `browser`), found at SLUICE_CHROMIUM or where Debian has it.

Skipped where there is none; the reason is in the report's header.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from sluice import SyncBroker
from tests.support.wire import WireClient

_HERE = Path(__file__).parent
_CHROMIUM = os.environ.get("SLUICE_CHROMIUM") or shutil.which("chromium")
# Nothing of it asks the network for anything.
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
# The first connection to an admin port loads the HTTP stack, on a busy machine. It is only waited for in vain where
# something is wrong.
_TIMEOUT_MS = 30_000

OpenPage = Callable[..., Page]
Connect = Callable[[SyncBroker, str], WireClient]


def pytest_report_header() -> list[str]:
    if _CHROMIUM:
        return []
    return ["tests/browser: skipped, as there is no Chromium (apt-get install chromium, or say where: SLUICE_CHROMIUM)"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if _HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if not _CHROMIUM:
                item.add_marker(pytest.mark.skip(reason="there is no Chromium"))


# Of the package, not of the session: while it is open an event loop runs in this thread, which no other test stands.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        expect.set_options(timeout=_TIMEOUT_MS)
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=_FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def open_page(chromium: Browser) -> Iterator[OpenPage]:
    """Opens the page of a broker as someone new; the options are those of a Playwright context.

    At the end there must have been no error in a script, and nothing that the policy had to forbid.
    """
    problems: list[str] = []
    with ExitStack() as stack:

        def opened(broker: SyncBroker, **options: object) -> Page:
            context = chromium.new_context(**{"viewport": {"width": 1400, "height": 1000}, **options})  # type: ignore[arg-type]  # they are the caller's
            stack.callback(context.close)
            page = context.new_page()
            page.set_default_timeout(_TIMEOUT_MS)
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("dialog", lambda dialog: problems.append(f"a dialog: {dialog.message}"))
            page.on("console", lambda said: _note(problems, said.type, said.text))
            assert broker.admin is not None
            page.goto(broker.admin)
            return page

        yield opened
    assert problems == []


def _note(problems: list[str], kind: str, text: str) -> None:
    # That a request was refused, or nobody was there to take it, is what some tests are about.
    if kind == "error" and not text.startswith("Failed to load resource"):
        problems.append(text)


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Connects a client of this id, until the test is over."""
    with ExitStack() as stack:
        yield lambda broker, client_id: stack.enter_context(WireClient(broker.bootstrap.split(",")[0], client_id))
