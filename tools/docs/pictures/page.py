"""Take the screenshots in docs/page of brokers with active clients: `python -m tools.docs.pictures.page`.

The page on a desktop, light and dark; the dialog of a throttled client; the clients on a phone. It takes a minute, so
that the clients have a history.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from threading import Event, Thread

from kafka import KafkaConsumer, KafkaProducer
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from sluice.cli.admin_client import AdminClient
from tests.support.broker_process import BrokerProcess, overrides, running_broker

PICTURES = Path(__file__).parents[3] / "docs" / "page"
_PROPERTIES = (
    "quota.producer.default=1M",
    "quota.producer.override=gold:4M",
    "quota.consumer.default=2M",
    "sluice.journal.events=16384",
)
_FAULT = {
    "id": "moved",
    "action": {"kind": "error", "code": "NOT_LEADER_OR_FOLLOWER"},
    "api": "Produce",
    "client_id": "checkout",
    "schedule": "1 fail, 30 pass, repeat",
}
_QUOTA = {"entity": {"client-id": "checkout"}, "quotas": {"producer_byte_rate": 250_000}}
# Client id -> bytes of a record, seconds between records; two clients are throttled.
_PRODUCERS = {"gold": (80_000, 0.004), "bronze": (25_000, 0.008), "steady": (10_000, 0.1), "checkout": (1_000, 0.1)}
_HISTORY_S = 45
_DESKTOP: ViewportSize = {"width": 1360, "height": 860}
_SHEET: ViewportSize = {"width": 620, "height": 640}
_PHONE: ViewportSize = {"width": 390, "height": 844}
_CHROMIUM = os.environ.get("SLUICE_CHROMIUM") or shutil.which("chromium")


def main() -> None:
    """Run brokers and clients, and take all screenshots."""
    with running_broker(Path(mkdtemp()) / "log", "--brokers", "2", *overrides(*_PROPERTIES)) as broker:
        admin = AdminClient(broker.admin, token=None)
        admin.post("/api/v1/faults", _FAULT, object)
        admin.put("/api/v1/quotas", _QUOTA, object)
        with sync_playwright() as playwright, _traffic(broker.bootstrap):
            browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
            _take(browser, broker)
            browser.close()


def _take(browser: Browser, broker: BrokerProcess) -> None:
    page = _opened(browser, broker, _DESKTOP)
    page.wait_for_timeout(_HISTORY_S * 1000)  # history is recorded only while a page is open
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.screenshot(path=PICTURES / f"{scheme}.png")
    phone = _opened(browser, broker, _PHONE, scale=1.5)
    phone.locator("#client-rows tr").first.wait_for()
    phone.locator("section", has=phone.locator("#client-rows")).evaluate("section => section.scrollIntoView()")
    phone.screenshot(path=PICTURES / "phone.png")
    dialog = _opened(browser, broker, _SHEET)
    dialog.get_by_role("button", name="bronze: explain").click()
    dialog.get_by_text("Throttled by its Produce quota").wait_for()
    dialog.screenshot(path=PICTURES / "explain.png")


def _opened(browser: Browser, broker: BrokerProcess, viewport: ViewportSize, scale: float = 1) -> Page:
    page = browser.new_page(viewport=viewport, color_scheme="light", device_scale_factor=scale)
    page.goto(broker.admin)
    return page


@contextmanager
def _traffic(bootstrap: str) -> Iterator[None]:
    stopped = Event()
    work = [_producing(bootstrap, name, size, pause_s, stopped) for name, (size, pause_s) in _PRODUCERS.items()]
    threads = [Thread(target=one) for one in (*work, lambda: _consume(bootstrap, stopped))]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopped.set()
        for thread in threads:
            thread.join()


def _producing(bootstrap: str, client_id: str, size: int, pause_s: float, stopped: Event) -> Callable[[], None]:
    def produce() -> None:
        producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=client_id)
        while not stopped.wait(pause_s):
            producer.send("orders", bytes(size)).get(timeout=60)
        producer.close()

    return produce


def _consume(bootstrap: str, stopped: Event) -> None:
    consumer = KafkaConsumer(
        "orders",
        bootstrap_servers=bootstrap,
        client_id="reader",
        group_id="readers",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=200_000,  # with 1 MB per fetch it would fetch only every half second
    )
    while not stopped.is_set():
        consumer.poll(100)
    consumer.close()


if __name__ == "__main__":
    main()
