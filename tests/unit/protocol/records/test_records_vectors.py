"""The public record vectors, made with Apache Kafka's own classes, and a test that their checks can fail."""

import json
from collections.abc import Iterator

import pytest

from tests.support.vectors import vectors
from tests.vectors.records import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_vector_equals_kafka(kind: str) -> None:
    failures = [f"{vector['id']}: {failure}" for vector in vectors(f"{kind}*") for failure in KINDS[kind](vector) or ()]
    assert failures == []


def altered(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Yield every leaf of a vector's expectations with a wrong value."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from altered(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from altered(inner, (*path, index))
    elif isinstance(value, bool):
        yield path, not value
    elif isinstance(value, int):
        yield path, value + 1


# Inputs and explanations of a vector; everything else is compared.
GIVEN = {"id", "jar", "magic", "compression", "mutation", "build", "input_hex", "config", "to_magic", "first_offset"}


@pytest.mark.parametrize("kind", ["records-", "records_invalid-", "records_downconvert-"])
def test_vector_with_any_changed_value_fails(kind: str) -> None:
    vector = next(vectors(f"{kind}*"))
    expectations = {key: value for key, value in vector.items() if key not in GIVEN}
    for path, wrong in altered(expectations):
        if path[-1] in ("log_append_time", "log_start_offset", "log_end_offset"):
            continue  # a value of the log, not of the records
        copy = json.loads(json.dumps(vector))
        target = copy
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = wrong
        assert KINDS[kind](copy), f"{path} was {wrong}, undetected"
