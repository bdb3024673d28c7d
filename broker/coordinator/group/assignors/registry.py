"""The server-side assignors by name."""

from .range import assign as assign_range
from .spec import Assign
from .uniform import assign as assign_uniform

ASSIGNORS: dict[str, Assign] = {"uniform": assign_uniform, "range": assign_range}
