"""The vectors of Apache Kafka in tests/vectors/data."""

import json
from collections.abc import Iterator
from pathlib import Path

from tests.vectors import Vector
from tests.vectors.__main__ import lines

VECTORS = Path(__file__).parents[1] / "vectors" / "data"


def vector_files(pattern: str) -> list[Path]:
    """Return the files that match; there is at least one."""
    files = sorted(VECTORS.glob(f"{pattern}.jsonl.xz"))
    assert files, pattern
    return files


def vectors(pattern: str) -> Iterator[Vector]:
    for file in vector_files(pattern):
        yield from (json.loads(line) for _, line in lines(file))
