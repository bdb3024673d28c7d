"""Schedules and brokers of simulated fleets."""

from sluice.broker.scenarios.files import scenario_of
from sluice.fleet.simulation.broker import BrokerModel
from sluice.fleet.simulation.schedule import Schedule, schedule_of

FAST = BrokerModel(produce_us=1, metadata_us=1, connection_us=1, network_us=1)


def schedule_with(*steps: dict[str, object], duration: str = "60s", **more: object) -> Schedule:
    return schedule_of(scenario_of({"name": "test", "duration": duration, "steps": list(steps), **more}))
