"""Take the screenshots in docs/trace of a failed test: `python -m tools.docs.pictures.trace`.

The test reads orders of two producers with a group of two readers, while requests fail and are retried. It passes
without the quota of one producer, and fails with it, as its orders come too late.
"""

import asyncio
import os
import shutil
import time
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from PIL import Image
from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from sluice import Broker
from sluice.trace.model import Result
from sluice.trace.recording import FailedLine, LogLine, PhaseTimes, Recorded, Run
from sluice.trace.stored import write_trace

PICTURES = Path(__file__).parents[3] / "docs" / "trace"
_ORDERS = 40
_LATE_S = 2
_QUOTA = 2_000  # bytes per second, less than the producer sends
_FAULT = {
    "id": "too-few-replicas",
    "action": {"kind": "error", "code": "NOT_ENOUGH_REPLICAS"},
    "api": "Produce",
    "client_id": "shop",
    "times": 3,
}
_DESKTOP: ViewportSize = {"width": 1300, "height": 780}
_TABLET: ViewportSize = {"width": 760, "height": 900}
_PHONE: ViewportSize = {"width": 390, "height": 780}
_CHROMIUM = os.environ.get("SLUICE_CHROMIUM") or shutil.which("chromium")


def main() -> None:
    """Run the test with and without the quota, and take all screenshots."""
    folder = Path(mkdtemp())
    passed, failed = folder / "passed.html", folder / "failed.html"
    asyncio.run(_test(passed, None, None))
    asyncio.run(_test(failed, _QUOTA, None))
    compared = folder / "compared.html"
    asyncio.run(_test(compared, _QUOTA, passed))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        _take(browser, failed, compared)
        browser.close()


def _take(browser: Browser, failed: Path, compared: Path) -> None:
    page = _opened(browser, failed, _DESKTOP)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        _save(page, scheme)
    page = _opened(browser, failed, _TABLET)
    page.locator("#tab-state").click()
    _save(page, "tablet")
    page = _opened(browser, failed, _PHONE)
    _save(page, "phone")
    page = _opened(browser, compared, _DESKTOP)
    page.locator("#tab-differences").click()
    _save(page, "compare")


def _opened(browser: Browser, file: Path, viewport: ViewportSize) -> Page:
    page = browser.new_page(viewport=viewport, color_scheme="light")
    page.goto(file.as_uri())
    page.locator("html[data-ready]").wait_for(state="attached")
    return page


def _save(page: Page, name: str) -> None:
    """Save a screenshot with 256 colours, which is a third of the size and looks the same."""
    with Image.open(BytesIO(page.screenshot())) as picture:
        fewer = picture.convert("RGB").quantize(256, kmeans=5, dither=Image.Dither.NONE)
        fewer.save(PICTURES / f"{name}.png", optimize=True)


async def _test(file: Path, quota: int | None, compare: Path | None) -> None:
    async with Broker(brokers=3, config={"group.initial.rebalance.delay.ms": 0}) as broker:
        setup = time.time_ns()
        await broker.cluster.create_topic("orders", partitions=3, replication_factor=3)
        broker.faults.add(_FAULT)
        if quota is not None:
            broker.quota(produce=quota, client_id="import")
        call = time.time_ns()
        logs: list[LogLine] = []
        read, asserted = await _orders(broker, logs)
        is_passed = read == 2 * _ORDERS
        assert is_passed is (quota is None), f"{read} orders were read in time"
        text = f"AssertionError: not all orders arrived in {_LATE_S} s\nassert {read} == {2 * _ORDERS}"
        failure = None if is_passed else FailedLine(text, "tests/test_orders.py", 42, asserted)
        result: Result = "passed" if is_passed else "failed"
        phases = [
            PhaseTimes("setup", setup, call, "passed"),
            PhaseTimes("call", call, asserted, result),
            PhaseTimes("teardown", asserted, time.time_ns(), "passed"),
        ]
        title = "tests/test_orders.py::test_orders_are_read"
        run = Run(title, "3 brokers, aiokafka", result, phases, logs, failure)
        write_trace(file, [Recorded("", broker.journal.events())], run, compare)


async def _orders(broker: Broker, logs: list[LogLine]) -> tuple[int, int]:
    """Send and read orders, and return the number of those that were read in time, and the time of the assertion."""
    read = 0

    def log(logger: str, text: str) -> None:
        logs.append(LogLine(time.time_ns(), "INFO", logger, text))

    async def consume(consumer: AIOKafkaConsumer) -> None:
        nonlocal read
        async for _ in consumer:
            read += 1

    async def produce(producer: AIOKafkaProducer, size: int) -> None:
        for number in range(_ORDERS):
            await producer.send_and_wait("orders", bytes(size), partition=number % 3)
            await asyncio.sleep(0.01)
        log("orders.producer", "all orders are sent")

    readers = [
        AIOKafkaConsumer(
            "orders",
            bootstrap_servers=broker.bootstrap,
            client_id=f"reader-{number}",
            group_id="readers",
            auto_offset_reset="earliest",
            auto_commit_interval_ms=300,
            heartbeat_interval_ms=300,
        )
        for number in (1, 2)
    ]
    producers = {
        name: AIOKafkaProducer(bootstrap_servers=broker.bootstrap, client_id=name) for name in ("shop", "import")
    }
    for client in (*readers, *producers.values()):
        await client.start()
    log("orders.reader", "both readers have partitions")
    consuming = [asyncio.create_task(consume(reader)) for reader in readers]
    sending = [
        asyncio.create_task(produce(producer, size))
        for producer, size in zip(producers.values(), (200, 3000), strict=True)
    ]
    await asyncio.sleep(_LATE_S)
    in_time = read, time.time_ns()
    for task in (*consuming, *sending):
        task.cancel()
    for client in (*readers, *producers.values()):
        await client.stop()
    return in_time


if __name__ == "__main__":
    main()
