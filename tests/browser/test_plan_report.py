"""The report of a plan fits the page on screens and phones, and labels in its plots do not overlap."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from sluice.spark.plan import local_engine
from sluice.spark.plan.analysis import Limits, Settings
from sluice.spark.plan.job import plan
from sluice.spark.plan.recommendation import Policy
from sluice.spark.plan.report import PAGE
from tests.support.journal_lines import journal

CLIENTS = {"a": 40, "a-long-client-id-of-a-service-in-production-0123456789": 9_000, "x" * 200: 90_000}
LOGS = {
    "rates of one size": {name: (100, 40_000 + number) for number, name in enumerate(CLIENTS)},
    "rates of all sizes": {name: (200, nbytes) for name, nbytes in CLIENTS.items()},
}
# Many quotas, some next to each other, two profiles and both loops.
QUOTAS = (1e3, 1.1e3, 1.2e3, 5e4, 5.1e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 9e6, 1e7, 1.1e7)
SETTINGS = Settings(QUOTAS, ("by-version", "kip-13"), ("closed", "open"), "client-id", Limits(100, 0.05))

WIDTHS = (1300, 800, 390)  # of a screen, a tablet and a phone

# The boxes of labels: left, right, top, bottom. A label at 45 degrees is as high as its line, where it ends.
_BOXES = """svg => [...svg.querySelectorAll("text")].filter(each => each.textContent.trim()).map(each => {
  const box = each.getBoundingClientRect(), isTilted = (each.getAttribute("transform") || "").includes("rotate(-45");
  const left = isTilted ? box.right - parseFloat(getComputedStyle(each).fontSize) : box.left;
  return [isTilted ? "tilted" : "", left, box.right, box.top, box.bottom];
})"""


@pytest.fixture(scope="module", params=LOGS)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plan")
    (folder / "log").write_bytes(journal(LOGS[request.param], seconds=120))
    plan([str(folder / "log")], folder / "out", SETTINGS, Policy(), local_engine.run, lambda *_: None)
    return folder / "out" / PAGE


@pytest.fixture(scope="module")
def page(chromium: Browser, report: Path) -> Iterator[Page]:
    context = chromium.new_context()
    shown = context.new_page()
    shown.goto(report.as_uri())
    yield shown
    context.close()


@pytest.mark.parametrize("width", WIDTHS)
def test_the_report_fits_the_page(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    wider = "each => each.scrollWidth - each.clientWidth"
    assert page.evaluate(f"({wider})(document.documentElement)") == 0
    assert [page.evaluate(wider, each) for each in page.query_selector_all(".scroll, figure")] == [0] * 5


@pytest.mark.parametrize("width", WIDTHS)
def test_labels_do_not_overlap(page: Page, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    for svg in page.query_selector_all("svg"):
        boxes: list[tuple[str, float, float, float, float]] = svg.evaluate(_BOXES)
        tilted = sorted(box for box in boxes if box[0])
        assert all(one[2] <= other[1] + 1 for one, other in pairwise(tilted)), tilted
        flat = [box for box in boxes if not box[0]]
        for number, one in enumerate(flat):
            for other in flat[number + 1 :]:
                apart = (
                    one[2] <= other[1] + 1 or other[2] <= one[1] + 1 or one[4] <= other[3] + 2 or other[4] <= one[3] + 2
                )
                assert apart, (one, other)
