"""The time of the event loop's selector, which passes only when a test lets it pass."""

from dataclasses import dataclass

import pytest


@dataclass
class SelectorTime:
    now_s: float = 0.0

    def read(self) -> float:
        return self.now_s


@pytest.fixture(autouse=True)
def selector_time(monkeypatch: pytest.MonkeyPatch) -> SelectorTime:
    time = SelectorTime()
    monkeypatch.setattr("sluice.broker.network.fair_selector.monotonic_s", time.read)
    return time
