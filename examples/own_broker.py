"""The broker of an example: the address in its first argument, or an embedded broker with an outage."""
# ruff: noqa: T201  (a program that prints)

import asyncio
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from sluice import SyncBroker
from sluice.client.admin import AdminClient
from sluice.errors import SluiceError

_ANSWERS_WITHIN_MS = 4000


@contextmanager
def given_or_own(**config: str | float) -> Iterator[tuple[str, SyncBroker | None]]:
    """Yield the address of a broker, and the broker itself if it is embedded; exit if no broker responds."""
    if len(sys.argv) > 1:
        asyncio.run(_check(sys.argv[1]))
        yield sys.argv[1], None
        return
    with SyncBroker(config={name.replace("_", "."): value for name, value in config.items()}, admin_port=0) as broker:
        print(f"-- no address was given: started a broker at {broker.bootstrap}, page {broker.admin}", flush=True)
        yield broker.bootstrap, broker


@contextmanager
def outage(broker: SyncBroker | None, *, when: Callable[[], bool], for_s: float) -> Iterator[None]:
    """Stop an embedded broker for a while, in the background, once a condition holds."""
    ended = Event()

    def stop_and_start() -> None:
        if broker is None:
            return
        while not when():
            if ended.wait(0.1):
                return
        print(f"-- the broker stops for {for_s:g} s", flush=True)
        broker.cluster.stop(controlled=False)
        ended.wait(for_s)
        broker.cluster.start()
        print("-- the broker runs again", flush=True)

    thread = Thread(target=stop_and_start)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


async def _check(bootstrap: str) -> None:
    try:
        async with AdminClient({"bootstrap.servers": bootstrap}) as admin:
            await admin.describe_cluster(timeout_ms=_ANSWERS_WITHIN_MS)
    except SluiceError as error:
        sys.exit(f"{bootstrap}: no Kafka broker answers: {error}")
