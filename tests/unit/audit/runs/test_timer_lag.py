"""How late timers are."""

from sluice.audit.runs.timer_lag import LagMeter
from sluice.clock import ManualClock


def test_timers_that_are_in_time_are_not_late() -> None:
    clock = ManualClock()
    meter = LagMeter(clock)
    late_ms = meter.measure()
    clock.advance(1000)
    assert late_ms() == 0


class Stuttering(ManualClock):
    """Calls what is due, 30 ms late, whenever it is asked to go on."""

    def stumble(self) -> None:
        self._now_ms += 40
        self.advance(0)


def test_what_one_in_fifty_timers_is_late_is_told_to_who_measured_then() -> None:
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
