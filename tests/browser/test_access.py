"""Safety and accessibility of the page: hostile names, small screens, dark mode, keyboard, axe."""

from collections.abc import Iterator
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from sluice import SyncBroker
from sluice.protocol.apis.api_versions import ApiVersionsRequest
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.browser.conftest import Connect, OpenPage
from tests.support.records import produce_of

HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "javascript:alert(1)//'\"`${alert(1)}",
    "\u202egnp\u0000\n.exe",
    "x" * 3000,
)
PHONE = {"viewport": {"width": 360, "height": 740}, "has_touch": True, "is_mobile": True}


@pytest.fixture
def busy(connect: Connect) -> Iterator[SyncBroker]:
    """A broker with clients of hostile names, a throttled client, and a fault rule and a quota with hostile names."""
    with SyncBroker(2, admin_port=0, config={"quota.producer.default": "1k"}) as broker:
        for name in (*HOSTILE, "shop"):
            client = connect(broker, name)
            client.call(ApiVersionsRequest(client_software_name="a-b", client_software_version="1"), 3)
            client.call(MetadataRequest(topics=[MetadataRequestTopic(name=name[:200])]), 4)
        client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
        client.send(produce_of(100_000, 9, "shop"), 9)
        broker.quota(client_id=HOSTILE[0], produce=5)
        broker.faults.add({"action": "close", "id": "<b>bold", "client_id": HOSTILE[1], "after": "60m"})
        yield broker


def _open_everything(page: Page) -> None:
    for summary in ("#quota-new", "#fault-new", "#scenario-catalogue", "#connection-list"):
        page.locator(f"{summary} > summary").click()
    expect(page.locator("#fault-form").get_by_role("button", name="Add rule")).to_be_visible()
    expect(page.locator("#scenario-rows li").first).to_be_visible()
    expect(page.locator("#connection-rows tr")).to_have_count(len(HOSTILE) + 1)


def test_client_names_are_shown_as_text(busy: SyncBroker, open_page: OpenPage) -> None:
    page = open_page(busy)
    _open_everything(page)
    names = page.locator("#client-rows .identity button")
    expect(names).to_have_count(len(HOSTILE) + 1)
    shown = names.all_text_contents()
    assert {HOSTILE[0], HOSTILE[1], HOSTILE[2]} <= set(shown)
    assert "\\u{202e}gnp\\u{0}\\u{a}.exe" in shown, "control and format characters are escaped"
    page.get_by_role("button", name=f"{HOSTILE[0]}: explain").click()
    expect(page.locator("#explain-title")).to_have_text(HOSTILE[0])
    assert page.locator("main img, main script, dialog img, dialog script").count() == 0


@pytest.mark.parametrize("options", [PHONE, {"viewport": {"width": 768, "height": 900}}], ids=["phone", "tablet"])
def test_the_page_fits_the_width_of_the_screen(busy: SyncBroker, open_page: OpenPage, options: dict[str, Any]) -> None:
    page = open_page(busy, **options)
    _open_everything(page)
    expect(page.locator("#client-rows tr")).to_have_count(len(HOSTILE) + 1)
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert wide == 0, "the page scrolls horizontally"


# Texts that are wider than their element, which hides the rest; and texts beyond the right edge of the page.
_CUT = """() => [...document.querySelectorAll("main *, header *, dialog *")].filter((node) => {
  if (!node.checkVisibility() || node.closest(".unseen, .skip, thead")) return false;
  if (![...node.childNodes].some((one) => one.nodeType === 3 && one.data.trim())) return false;
  const style = getComputedStyle(node);
  const hidden = style.overflowX !== "visible" && style.overflowX !== "auto" && node.scrollWidth > node.clientWidth + 1;
  return hidden || node.getBoundingClientRect().right > document.documentElement.clientWidth + 1;
}).map((node) => `${node.tagName}.${node.className}: ${node.textContent}`)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_text_is_cut(busy: SyncBroker, open_page: OpenPage, scheme: str) -> None:
    page = open_page(busy, color_scheme=scheme)
    _open_everything(page)
    expect(page.locator("#client-rows tr")).to_have_count(len(HOSTILE) + 1)
    for width in (1300, 900, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(_CUT) == [], width
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_page_is_dark_if_the_system_prefers_it(busy: SyncBroker, open_page: OpenPage) -> None:
    colours = []
    for scheme in ("light", "dark"):
        page = open_page(busy, color_scheme=scheme)
        colours.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    light, dark = (sum(map(int, each.removeprefix("rgb(").rstrip(")").split(", "))) for each in colours)
    assert dark < 120 < 600 < light


def _serious(page: Page, **options: object) -> list[tuple[str, str, str]]:
    """Return the serious violations that axe finds: rule, element, remedy."""
    # Without this option axe also returns all elements that pass.
    found = Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    return [
        (each["id"], node["html"], node["failureSummary"])
        for each in found
        if each["impact"] in ("serious", "critical")
        for node in each["nodes"]
    ]


def test_axe_finds_nothing_serious(busy: SyncBroker, open_page: OpenPage) -> None:
    page = open_page(busy, bypass_csp=True)  # the policy forbids the script of axe
    _open_everything(page)
    assert _serious(page) == []
    page.get_by_role("button", name="shop: explain").click()
    expect(page.locator("#explain .sum").first).to_be_visible()
    assert _serious(page) == []
    dark = open_page(busy, bypass_csp=True, color_scheme="dark")
    _open_everything(dark)
    assert _serious(dark, runOnly=["color-contrast"]) == [], "dark mode changes only colours"


def test_every_control_is_reached_by_the_keyboard_with_visible_focus(busy: SyncBroker, open_page: OpenPage) -> None:
    page = open_page(busy)
    expect(page.locator("#client-rows tr")).to_have_count(len(HOSTILE) + 1)
    clickable = page.locator("button:visible, input:visible, select:visible, summary:visible").count()
    reached: set[str] = set()
    for _ in range(clickable + 20):
        page.keyboard.press("Tab")
        focused = page.evaluate(
            """() => {
              const node = document.activeElement, style = getComputedStyle(node);
              node.dataset.reached ??= String(document.querySelectorAll('[data-reached]').length);
              const isVisible = style.outlineStyle !== 'none' && style.outlineWidth !== '0px';
              return [node.tagName, node.dataset.reached, isVisible];
            }"""
        )
        if focused[0] == "BODY":
            break
        assert focused[2], f"the focus on {focused[0]} is not visible"
        if focused[0] in ("BUTTON", "INPUT", "SELECT", "SUMMARY"):
            reached.add(focused[1])
    assert len(reached) == clickable


def test_rows_keep_their_order_while_one_has_the_focus(busy: SyncBroker, open_page: OpenPage, connect: Connect) -> None:
    page = open_page(busy)
    rows = page.locator("#client-rows tr")
    expect(rows).to_have_count(len(HOSTILE) + 1)
    rows.first.get_by_role("button").first.focus()
    busiest = connect(busy, "busiest")
    busiest.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 4)
    busiest.send(produce_of(500_000, 9, "busiest"), 9)
    expect(rows.last).to_contain_text("busiest")
    page.locator("#client-search input").focus()
    expect(rows.first).to_contain_text("busiest")
