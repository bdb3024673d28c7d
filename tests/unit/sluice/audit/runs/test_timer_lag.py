"""Timer lag."""

from sluice.audit.runs.timer_lag import LagMeter
from sluice.clock import ManualClock


def test_punctual_timers_have_no_lag() -> None:
    clock = ManualClock()
    meter = LagMeter(clock)
    late_ms = meter.measure()
    clock.advance(1000)
    assert late_ms() == 0


class Stuttering(ManualClock):
    """A clock that runs due calls 30 ms late."""

    def stumble(self) -> None:
        self._now_ms += 40
        self.advance(0)


def test_lag_of_one_in_fifty_timers_is_reported_for_the_interval() -> None:
    clock = Stuttering()
    meter = LagMeter(clock)
    before_ms = meter.measure()
    for _ in range(3):
        clock.stumble()
        clock.advance(500)
    assert before_ms() == 30
    after_ms = meter.measure()
    clock.advance(500)
    assert after_ms() == 0
    meter.stop()
    clock.stumble()
    assert after_ms() == 0, "it has stopped"
