"""What the two engines of a plan have in common: what is asked of them, and how they tell how far they are."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from sluice.pipeline.charges.sources import Split

from .analysis import Settings

# What is done, how much of it, of how much.
Tell = Callable[[str, int, int], None]
# Writes the tables of these splits into a folder; returns how much was read, by what it was.
Find = Callable[[Sequence[Split], Settings, Path, Tell], Mapping[str, int]]
