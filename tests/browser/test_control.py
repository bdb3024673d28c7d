"""Control of brokers from the page: faults, scenarios, stops, journal, token."""

from playwright.sync_api import expect

from sluice import SyncBroker
from sluice.protocol.apis.metadata import MetadataRequest, MetadataRequestTopic
from tests.browser.conftest import Connect, OpenPage
from tests.support.records import produce


def test_a_fault_rule_is_added_with_the_form_hits_and_is_switched_off(open_page: OpenPage, connect: Connect) -> None:
    with SyncBroker(admin_port=0) as broker:
        page = open_page(broker)
        page.locator("#fault-new summary").first.click()
        form = page.locator("#fault-form")
        form.get_by_label("Kind of fault").select_option("error")
        form.get_by_label("code").fill("NO_SUCH")
        form.get_by_label("api", exact=True).fill("Produce")
        form.get_by_role("button", name="Add rule").click()
        expect(form.get_by_role("alert")).to_contain_text("unknown error code 'NO_SUCH'")
        expect(form.get_by_label("code")).to_be_focused()
        form.get_by_label("code").fill("NOT_LEADER_OR_FOLLOWER")
        form.get_by_role("button", name="Add rule").click()
        rule = page.locator("#fault-rows li", has_text="fault-1")
        expect(rule).to_contain_text("action=error code=NOT_LEADER_OR_FOLLOWER api=Produce")

        shop = connect(broker, "shop")
        shop.call(MetadataRequest(topics=[MetadataRequestTopic(name="t")]), 9)
        response = shop.call(produce(9), 9)
        assert response.responses[0].partition_responses[0].error_code == 6
        expect(rule).to_contain_text("1 hit of 1 matched")
        expect(page.locator("#journal-lines li[data-tone=fault]").first).to_contain_text("fault-1")

        switch = rule.get_by_role("switch")
        switch.click()
        expect(switch).to_have_attribute("aria-checked", "false")
        assert shop.call(produce(9), 9).responses[0].partition_responses[0].error_code != 6
        switch.click()
        expect(switch).to_have_attribute("aria-checked", "true")
        assert shop.call(produce(9), 9).responses[0].partition_responses[0].error_code == 6
        rule.get_by_role("button", name="Remove").click()
        expect(rule).to_have_count(0)


def test_a_fault_rule_is_added_as_json(open_page: OpenPage) -> None:
    with SyncBroker(admin_port=0) as broker:
        page = open_page(broker)
        page.locator("#fault-new summary").first.click()
        form = page.locator("#fault-form")
        form.get_by_label("Edit as JSON").check()
        field = form.get_by_label("Rule as JSON")
        field.fill('{"action": "close", "id": "cut", "colour": 1}')
        form.get_by_role("button", name="Add rule").click()
        expect(form.get_by_role("alert").last).to_contain_text("fault.colour: unknown field")
        field.fill('{"action": "close", "id": "cut"}')
        form.get_by_role("button", name="Add rule").click()
        expect(page.locator("#fault-rows li")).to_contain_text("action=close")


def test_the_journal_is_filtered_and_paused(open_page: OpenPage, connect: Connect) -> None:
    with SyncBroker(admin_port=0) as broker:
        shop, other = connect(broker, "shop"), connect(broker, "other")
        for client in (shop, other):
            client.call(MetadataRequest(), 9)
        page = open_page(broker)
        lines = page.locator("#journal-lines li")
        expect(lines).to_have_count(4)
        page.get_by_label("Kind of event").select_option("request")
        expect(lines).to_have_count(2)
        page.get_by_label("Exact client id").fill("shop")
        expect(lines).to_have_count(1)
        expect(lines.first).to_contain_text("Metadata v9")
        page.get_by_label("API", exact=True).fill("Prodcue")
        expect(page.locator("#journal").get_by_role("alert")).to_contain_text("got Prodcue. Did you mean Produce?")
        page.get_by_label("API", exact=True).fill("")
        expect(page.locator("#journal").get_by_role("alert")).to_be_hidden()
        expect(lines).to_have_count(1)
        page.get_by_role("button", name="Pause").click()
        shop.call(MetadataRequest(), 9)
        expect(page.get_by_role("button", name="Resume (1 new)")).to_be_visible()
        expect(lines).to_have_count(1)


def test_a_broker_is_isolated_stopped_and_started_and_a_scenario_runs(open_page: OpenPage) -> None:
    with SyncBroker(3, admin_port=0) as broker:
        page = open_page(broker)
        page.get_by_role("button", name="Isolate broker 2").click()
        second = page.locator("#broker-rows tr").nth(1)
        expect(second).to_contain_text("isolated")
        expect(page.get_by_role("button", name="Stop broker 2")).to_be_focused()
        page.keyboard.press("Enter")
        expect(second).to_contain_text("stopped")
        page.get_by_role("button", name="Start broker 2").click()
        expect(second).to_contain_text("running")

        page.locator("#scenario-catalogue summary").click()
        page.get_by_role("button", name="Run leader-ping-pong").click()
        run = page.locator("#scenario-run")
        expect(run).to_contain_text("broker 2 leads orders-0")
        run.get_by_role("button", name="Stop leader-ping-pong").click()
        expect(run).to_contain_text("stopped, ")


def test_the_page_prompts_for_the_token_and_keeps_it_in_the_tab(open_page: OpenPage) -> None:
    with SyncBroker(admin_port=0, config={"sluice.admin.token": "a secret"}) as broker:
        page = open_page(broker)
        dialog = page.get_by_role("dialog", name="This broker requires a token")
        dialog.get_by_label("Token").fill("another")
        dialog.get_by_role("button", name="Connect").click()
        expect(dialog.get_by_role("alert")).to_contain_text("Invalid token.")
        dialog.get_by_label("Token").fill("a secret")
        page.keyboard.press("Enter")
        expect(page.locator("#live")).to_have_text("live")
        page.reload()
        expect(page.locator("#live")).to_have_text("live")
        assert page.evaluate("localStorage.length + document.cookie.length") == 0


def test_the_page_reports_a_lost_broker_and_reconnects(open_page: OpenPage) -> None:
    with SyncBroker(admin_port=0) as broker:
        page = open_page(broker)
        expect(page.locator("#live")).to_have_text("live")
        assert broker.admin is not None
        port = int(broker.admin.rpartition(":")[2])
    expect(page.locator("#gone")).to_contain_text("The broker cannot be reached")
    expect(page.locator("#live")).to_have_text("disconnected")
    with SyncBroker(admin_port=port):
        expect(page.locator("#live")).to_have_text("live")
        expect(page.locator("#gone")).to_be_hidden()
