"""Clients, their quotas and throttle times on the page."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from sluice import SyncBroker
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.browser.conftest import Connect, OpenPage
from tests.support.records import produce_of
from tests.support.wire import WireClient

VERSION = 9  # of Produce


@pytest.fixture
def broker() -> Iterator[SyncBroker]:
    with SyncBroker(admin_port=0, config={"quota.producer.default": "1M"}) as broker:
        yield broker


def _row(page: Page, name: str) -> Locator:
    return page.locator("#client-rows tr", has=page.get_by_role("button", name=f"{name}: explain", exact=False))


def _produce(client: WireClient, size: int) -> None:
    client.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), VERSION)  # creates it
    client.call(produce_of(size, VERSION, client.client_id), VERSION)


def test_a_quota_is_edited_in_its_row_and_the_throttle_time_appears(
    broker: SyncBroker, open_page: OpenPage, connect: Connect
) -> None:
    shop = connect(broker, "shop")
    _produce(shop, 100_000)
    page = open_page(broker)
    row = _row(page, "shop")
    expect(row).to_contain_text("kB/s")
    row.get_by_role("button", name="produce quota: of 1 MB/s").click()
    field = row.get_by_role("textbox", name="produce quota")
    field.fill("-5")
    field.press("Enter")
    expect(row.get_by_role("alert")).to_contain_text(
        "producer_byte_rate: expected bytes per second of at least 1, such as 2M, 512Ki or 1e6, got"
    )
    expect(field).to_have_attribute("aria-invalid", "true")
    field.fill("1k")
    field.press("Enter")
    expect(row.get_by_role("button", name="produce quota: of 1 kB/s")).to_be_focused()
    shop.call(produce_of(1000, VERSION, "shop"), VERSION)
    expect(row.locator(".throttled")).to_have_text(re.compile(r"1 min \d+ s"))
    expect(page.locator("#quota-rows")).to_contain_text("client id shop")


def test_a_click_on_a_name_explains_the_throttle_time_with_its_arithmetic(
    broker: SyncBroker, open_page: OpenPage, connect: Connect
) -> None:
    broker.quota(client_id="shop", produce=1000)
    _produce(connect(broker, "shop"), 100_000)
    page = open_page(broker)
    name = page.get_by_role("button", name="shop: explain")
    name.focus()
    page.keyboard.press("Enter")
    sheet = page.get_by_role("dialog", name="shop")
    expect(page.get_by_text("amber is traffic above it")).to_be_visible()
    expect(sheet).to_contain_text("Throttled by its Produce quota")
    expect(sheet.locator(".sum").first).to_contain_text(re.compile(r"100,\d+ bytes / 10\.\d+ s = "))
    expect(sheet.locator(".sum").last).to_contain_text(
        "(10,000 bytes/s - 1,000 bytes/s) / 1,000 bytes/s * 10,000 ms = 90,000 ms"
    )
    expect(sheet.locator(".applies")).to_contain_text("client id shop")
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    expect(name).to_be_focused()


def test_many_clients_are_paged_and_searched(broker: SyncBroker, open_page: OpenPage, connect: Connect) -> None:
    for number in range(30):
        connect(broker, f"client-{number:02}").call(MetadataRequest(), VERSION)
    page = open_page(broker)
    page.get_by_label("Sort by").select_option("Name")
    expect(page.locator("#client-rows tr")).to_have_count(25)
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#client-rows tr")).to_have_count(5)
    expect(_row(page, "client-29")).to_be_visible()
    page.get_by_label("Client id or user").fill("NT-07")
    expect(page.locator("#client-rows tr")).to_have_count(1)
    expect(page.locator("#client-count")).to_have_text("1 of 30")
    page.get_by_label("Client id or user").fill("missing")
    expect(page.get_by_text("No client id or user contains “missing”.")).to_be_visible()
    phone = open_page(broker, viewport={"width": 390, "height": 844})
    expect(phone.locator("#client-rows tr")).to_have_count(6)
    assert phone.evaluate("document.documentElement.scrollHeight") < 3300


def test_a_page_without_clients_shows_the_first_steps(open_page: OpenPage, connect: Connect) -> None:
    with SyncBroker(admin_port=0) as broker:
        page = open_page(broker)
        welcome = page.locator("#welcome")
        expect(welcome).to_contain_text("No client has connected yet")
        expect(welcome).to_contain_text(f'bootstrap_servers="{broker.bootstrap}"')
        page.set_viewport_size({"width": 390, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") == 390, "the first steps are wider than a phone"
        connect(broker, "shop").call(MetadataRequest(), VERSION)
        expect(welcome).to_be_hidden()
        page.locator("#hint").get_by_role("button", name="1 MB/s for each producer").click()
        expect(page.locator("#hint")).to_be_hidden()
        expect(page.locator("#quota-rows")).to_contain_text("every client id")


def test_a_quota_is_set_with_the_form_and_removed(broker: SyncBroker, open_page: OpenPage) -> None:
    page = open_page(broker)
    page.locator("#quota-new summary").click()
    form = page.locator("#quota-form")
    form.get_by_label("Entity").select_option("One client id of one user")
    form.get_by_label("Quota").select_option("fetch")
    form.get_by_label("User", exact=True).fill("alice")
    form.get_by_label("Limit per second").fill("2.5M")
    form.get_by_role("button", name="Set").click()
    expect(form.get_by_role("alert")).to_contain_text("Empty client-id not supported")
    form.get_by_label("Client id", exact=True).fill("shop")
    form.get_by_role("button", name="Set").click()
    row = page.locator("#quota-rows li", has_text="user alice, client id shop")
    expect(row).to_contain_text("2.50 MB/s")
    row.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def test_the_page_shows_that_it_is_loading_before_its_first_data(broker: SyncBroker, open_page: OpenPage) -> None:
    page = open_page(broker)
    expect(page.locator("#live-words")).to_have_text("live")
    page.route("**/api/v1/stream*", lambda route: None)  # it gets no response
    page.reload()
    for panel in ("clients", "journal", "quotas", "faults"):
        expect(page.locator(f"#{panel} .empty")).to_have_text("Loading")
    page.unroute_all(behavior="ignoreErrors")
    page.reload()
    expect(page.locator("#live-words")).to_have_text("live")
    expect(page.get_by_text("Loading", exact=True)).to_have_count(0)
    expect(page.locator("#journal .empty")).to_have_text("No matching events yet.")


def test_a_client_without_fetch_traffic_shows_the_quota_that_would_apply(
    broker: SyncBroker, open_page: OpenPage, connect: Connect
) -> None:
    connect(broker, "shop").call(MetadataRequest(), VERSION)
    page = open_page(broker)
    row = _row(page, "shop")
    expect(row.get_by_role("button", name="produce quota: of 1 MB/s")).to_be_visible()
    expect(row.get_by_role("button", name="fetch quota: set a quota")).to_be_visible()
    broker.quota(fetch="2M")
    expect(row.get_by_role("button", name="fetch quota: of 2 MB/s")).to_be_visible()
    expect(row.locator(".meter b").first).to_have_text("—")
