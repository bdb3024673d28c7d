"""The public quota vectors, made with Apache Kafka's own classes, and a test that the check can fail."""

import gzip
import json
import os
from collections.abc import Iterator
from math import nextafter
from pathlib import Path

import pytest

from tests.vectors import Vector
from tests.vectors.quotas import KINDS

ROOT = Path(__file__).parents[3]
VECTORS = Path(os.environ.get("SLUICE_VECTORS", ROOT.parent / "shared" / "vectors"))


def vectors(kind: str) -> Iterator[Vector]:
    # Match whole names: `quotas` is a prefix of `quotas_request`.
    files = [file for file in (VECTORS / f"{kind}.jsonl", VECTORS / f"{kind}.jsonl.gz") if file.exists()]
    if not files:
        pytest.skip(f"no {kind}.jsonl or .jsonl.gz in {VECTORS}; set SLUICE_VECTORS to the folder of the vectors")
    for file in files:
        with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


@pytest.mark.parametrize("kind", KINDS)
def test_vector_is_reproduced_bit_for_bit(kind: str) -> None:
    failures = [f"{vector['id']}: {failure}" for vector in vectors(kind) for failure in KINDS[kind](vector)]
    assert failures == []


EVENT = {"t": 0, "op": "record", "client_id": "c", "value": 20.0}
QUOTA = {"t": 0, "op": "set_quota", "user": None, "client_id": "<default>", "bound": 1.0}
EXPECTED = {"throttle_ms": 10_000, "rate": 2.0, "bound": 1.0, "window_ms": 10_000}


def test_check_accepts_a_correct_vector() -> None:
    assert KINDS["quotas"]({"num_samples": 11, "window_s": 1, "events": [QUOTA, EVENT | EXPECTED]}) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("throttle_ms", 10_001),
        ("rate", nextafter(2.0, 3.0)),
        ("rate", -2.0),
        ("rate", None),
        ("rate", "NaN"),
        ("window_ms", 9999),
        ("throttle_time_avg", 0.0),
        ("unheard_of", 1),
        ("tags", {"user": "ANONYMOUS", "client-id": "c"}),
    ],
    ids=str,
)
def test_check_rejects(field: str, value: object) -> None:
    event = EVENT | EXPECTED | {field: value}
    failures = KINDS["quotas"]({"num_samples": 11, "window_s": 1, "events": [QUOTA, event]})
    assert len(failures) == 1
    assert field in failures[0]
