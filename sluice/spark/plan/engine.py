"""The interface of a plan's two engines."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sluice.spark.charges.sources import Split

from .analysis import Settings

# Arguments: the current step, and the numbers of its finished and of all parts.
OnProgress = Callable[[str, int, int], None]
# Writes the tables of these splits to a folder; returns counts of the input by kind.
Engine = Callable[[Sequence[Split], Settings, Path, OnProgress], Mapping[str, int]]
