"""Scenarios in Python: their model, and `load` for one in a file or the catalogue.

broker/scenarios/ implements them; docs/scenarios.md documents them.
"""

from sluice.broker.scenarios.files import load
from sluice.broker.scenarios.model import Scenario, Step
from sluice.errors import ScenarioError

__all__ = ["Scenario", "ScenarioError", "Step", "load"]
