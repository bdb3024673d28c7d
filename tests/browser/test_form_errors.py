"""The broker's error messages are shown at the fields that caused them."""

import re

from playwright.sync_api import Locator, expect

from sluice import SyncBroker
from tests.browser.conftest import OpenPage


def _expect_at(field: Locator, message: str) -> None:
    """Expect the focus on the field, and the message as its accessible description."""
    expect(field).to_be_focused()
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(field).to_have_accessible_description(re.compile(re.escape(message)))


def test_an_error_is_shown_at_its_field(open_page: OpenPage) -> None:
    with SyncBroker(admin_port=0) as broker:
        broker.faults.add({"action": "close", "id": "taken", "after": "60m"})
        page = open_page(broker)
        page.locator("#fault-new > summary").click()
        form = page.locator("#fault-form")
        add = form.get_by_role("button", name="Add rule")
        form.get_by_label("Kind of fault").select_option("close")
        api = form.get_by_label("api", exact=True)
        api.fill("Produce, Fetsh")
        add.click()
        _expect_at(api, "unknown API 'Fetsh'. Did you mean Fetch?")
        api.fill("Fetch")
        folded = form.locator("details")
        folded.locator("summary").click()
        form.get_by_label("schedule", exact=True).fill("3 pass")
        folded.locator("summary").click()
        add.click()
        expect(folded).to_have_attribute("open", "")
        expect(api).not_to_have_attribute("aria-invalid", "true")
        expect(form.get_by_role("alert")).to_contain_text("expected a phase that fails")
        form.get_by_label("schedule", exact=True).fill("")
        form.get_by_label("id", exact=True).fill("taken")
        add.click()
        expect(form.get_by_role("alert")).to_have_text("there is a fault rule taken already; choose another id")
        expect(form.get_by_label("id", exact=True)).to_be_focused()

        page.locator("#quota-new > summary").click()
        quota = page.locator("#quota-form")
        quota.get_by_label("Entity").select_option("One IP address")
        quota.get_by_label("IP address", exact=True).fill("nowhere.example")
        quota.get_by_label("Limit per second").fill("5")
        quota.get_by_role("button", name="Set").click()
        _expect_at(quota.get_by_label("IP address", exact=True), "nowhere.example is not a valid IP")
        quota.get_by_label("IP address", exact=True).fill("::1")
        quota.get_by_label("Limit per second").fill("fast")
        quota.get_by_role("button", name="Set").click()
        _expect_at(quota.get_by_label("Limit per second"), "connection_creation_rate: expected a number, got fast")
        quota.get_by_label("Limit per second").fill("0")
        quota.get_by_role("button", name="Set").click()
        _expect_at(quota.get_by_label("Limit per second"), "must be greater than 0")

        page.locator("#scenario-catalogue > summary").click()
        row = page.locator("#scenario-rows li", has_text="rolling-restart")
        row.get_by_role("button", name="Run rolling-restart").click()
        expect(row.get_by_role("alert")).to_contain_text("brokers")
