"""The table of the handlers with slices of their own, in the docstring of `long_request`, is complete."""

import re
from pathlib import Path

from sluice.broker.exchange.registry import HANDLERS
from sluice.broker.requests import long_request
from sluice.protocol.apis import API_KEYS

HANDLERS_FOLDER = Path(__file__).parents[4] / "broker/handlers"
# Modules that several files of an API, or several APIs, use.
SHARED = {
    "authorization": {"Fetch"},
    "down_conversion": {"Fetch"},
    "fetch_in_progress": {"Fetch"},
    "share_read": {"ShareFetch"},
}


def listed() -> set[str]:
    names = {API_KEYS[key].name for key in HANDLERS}
    return {row for row in re.findall(r"^    (\w+) {2,}\w", long_request.__doc__ or "", re.MULTILINE) if row in names}


def used() -> set[str]:
    found: set[str] = set()
    for path in HANDLERS_FOLDER.rglob("*.py"):
        text = path.read_text()
        if "ctx.sliced(" in text:
            found |= SHARED.get(path.stem) or set(re.findall(r'^API = served\("(\w+)"', text, re.MULTILINE))
    return found


def test_handlers_with_own_slices_are_listed_with_the_stall_without_them() -> None:
    assert listed() == used()
