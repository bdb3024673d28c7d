"""The broker of an example: the address in its first argument, or an embedded broker with an outage.

If SLUICE_KAFKA_UPSTREAM has the address of a cluster, an embedded proxy in front of it takes the place of the broker.
"""
# ruff: noqa: T201  (a program that prints)

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

from sluice import SyncBroker, SyncProxy
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
    properties = {name.replace("_", "."): value for name, value in config.items()}
    upstream = os.environ.get("SLUICE_KAFKA_UPSTREAM")
    own = (
        SyncProxy(upstream, config=properties, admin_port=0)
        if upstream
        else SyncBroker(config=properties, admin_port=0)
    )
    with own as broker:
        what = f"proxy in front of {upstream}" if upstream else "broker"
        print(f"-- no address was given: started a {what} at {broker.bootstrap}, page {broker.admin}", flush=True)
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
