"""Scenarios in Python: the model that a file is read into, and reading one by its name or path.

They stand in broker/scenarios/; docs/scenarios.md says what a scenario can do.
"""

from sluice.broker.scenarios.files import load
from sluice.broker.scenarios.model import Scenario, Step
from sluice.broker.scenarios.timeline import ScenarioError

__all__ = ["Scenario", "ScenarioError", "Step", "load"]
