"""Collections during long requests: none, unless one is due and the requests are small."""

import gc

import pytest

from sluice.broker.requests.garbage_collections import GarbageCollections

MINUTE_MS = 60_000.0


COLLECTIONS = {
    "small requests, but no collection is due": (300_000, 29_000, 0),
    "small requests after half a minute": (300_000, 31_000, 1),
    "the objects of large requests are not visited": (600_000, 9 * MINUTE_MS, 0),
    "after ten minutes at the latest": (600_000, 11 * MINUTE_MS, 1),
}


@pytest.mark.parametrize(("request_bytes", "after_ms", "collections"), COLLECTIONS.values(), ids=COLLECTIONS)
@pytest.mark.parametrize("event", ["a request begins", "a request ends"])
def test_collections_while_requests_are_in_progress(
    event: str, request_bytes: int, after_ms: float, collections: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    collected: list[tuple[int, ...]] = []
    monkeypatch.setattr(gc, "collect", lambda *generation: collected.append(generation))
    requests = GarbageCollections()
    begun = 3 if event == "a request ends" else 1
    for _ in range(begun):
        requests.postpone(request_bytes, 1000)
    change = requests.resume if event == "a request ends" else requests.postpone
    change(request_bytes, 1000 + after_ms)  # to two requests
    assert collected == [()] * collections
    assert not gc.isenabled()
    requests.postpone(0, 1001 + after_ms)  # which is not due again
    assert collected == [()] * collections
    for size in (0, request_bytes, request_bytes):
        requests.resume(size, 1001 + after_ms)
    assert gc.isenabled()


def test_disabled_collections_stay_disabled() -> None:
    gc.disable()
    try:
        requests = GarbageCollections()
        requests.postpone(1, 1000)
        requests.resume(1, 2000)
        assert not gc.isenabled()
    finally:
        gc.enable()
