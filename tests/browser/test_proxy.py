"""The page of a proxy."""

import re

from playwright.sync_api import expect

from sluice import SyncBroker, SyncProxy
from tests.browser.conftest import OpenPage


def test_the_page_of_a_proxy_names_the_cluster_and_offers_what_works(open_page: OpenPage) -> None:
    config = {"quota.producer.default": "1M", "sluice.quota.mode": "shadow"}
    with (
        SyncBroker() as upstream,
        SyncProxy(upstream.bootstrap, config=config, admin_port=0, only_clients=["shop-*"]) as proxy,
    ):
        page = open_page(proxy)
        expect(page).to_have_title(re.compile(r"^sluice proxy of \S{22}$"))
        expect(page.locator("#facts")).to_contain_text(f"in front of {upstream.bootstrap}")
        expect(page.locator("#quotas")).to_contain_text("Shadow mode: throttle times are recorded")
        expect(page.locator("#facts")).to_contain_text("rules only for clients shop-*")
        row = page.locator("#broker-rows tr")
        expect(row).to_contain_text(f"{upstream.bootstrap}0 in flight")
        row.get_by_role("button", name="Stop broker 1").click()
        expect(row).to_contain_text("stopped")
        row.get_by_role("button", name="Start broker 1").click()
        expect(row).to_contain_text("running")
        page.locator("#fault-new summary").first.click()
        kinds = page.locator("#fault-form").get_by_label("Kind of fault").locator("option").all_inner_texts()
        assert "error" in kinds
        assert "disk-full" not in kinds
        proxy.faults.add({"action": "close", "api": "Heartbeat"})
        proxy.quota(client_id="shop", produce="1M")
        expect(page.locator("#fault-rows li")).to_have_count(1)
        page.get_by_role("button", name="Stop all").click()
        expect(page.locator("#fault-rows li")).to_have_count(0)
        expect(page.locator("#quota-rows li")).to_have_count(0)
        page.locator("#scenario-catalogue summary").click()
        expect(page.get_by_role("button", name="Run quota-squeeze")).to_be_visible()
        assert page.get_by_role("button", name="Run disk-full").count() == 0
