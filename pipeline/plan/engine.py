"""The interface of the two engines of a plan."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sluice.pipeline.charges.sources import Split

from .analysis import Settings

# Called with the current step, how much of it is done, and of how much.
OnProgress = Callable[[str, int, int], None]
# Writes the tables of these splits into a folder; returns how much was read, by kind.
Engine = Callable[[Sequence[Split], Settings, Path, OnProgress], Mapping[str, int]]
