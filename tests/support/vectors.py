"""The files of the public vectors; the tests that read them are skipped without them."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.vectors import Vector
from tests.vectors.__main__ import lines

VECTORS = Path(os.environ.get("SLUICE_VECTORS", Path(__file__).parents[3] / "shared" / "vectors"))


def vector_files(pattern: str) -> list[Path]:
    """Return the files that match; skip the test if there is none."""
    files = sorted(VECTORS.glob(pattern))
    if not files:
        pytest.skip(f"no {pattern} in {VECTORS}; set SLUICE_VECTORS to the folder of the vectors")
    return files


def vectors(pattern: str) -> Iterator[Vector]:
    for file in vector_files(pattern):
        yield from (json.loads(line) for _, line in lines(file))
