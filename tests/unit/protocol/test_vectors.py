"""The vector runner, and all vectors of the wire format."""

import gzip
import json
import lzma
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sluice.protocol.message import Message
from tests.support.vectors import VECTORS, vector_files, vectors
from tests.unit.protocol.messages import MESSAGES
from tests.vectors import Vector
from tests.vectors.__main__ import check_line, main
from tests.vectors.protocol import KINDS, check_protocol, encoded, message_class


@pytest.mark.parametrize("kind", KINDS)
def test_every_wire_format_vector_passes(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([str(file) for file in vector_files(f"{kind}*")])
    captured = capsys.readouterr()
    assert (code, captured.err) == (0, "")
    passed = int(captured.out.splitlines()[-1].split()[0])
    assert passed > 0


SHARE_STATE = {f"{verb}ShareGroupState" for verb in ("Initialize", "Read", "Write", "Delete")} | {
    "ReadShareGroupStateSummary"
}


def test_defaults_are_kafkas() -> None:
    # The first vector of each message and version has all defaults.
    first: dict[tuple[type[Message], int], str] = {}
    vector: Any
    for vector in vectors("protocol-*"):
        cls = message_class(vector)
        if cls is not None:
            first.setdefault((cls, vector["version"]), vector["hex"])
    assert {message: encoded(message[0](), message[1]).hex() for message in MESSAGES if message in first} == first
    without_vectors = {cls.__name__.removesuffix("Request") for cls, _ in MESSAGES if cls.__name__.endswith("Request")}
    without_vectors -= {cls.__name__.removesuffix("Request") for cls, _ in first}
    assert without_vectors == {"DescribeQuorum", "UpdateFeatures", *SHARE_STATE}


EMPTY_FETCH = {
    "api_key": 1,
    "name": "Fetch",
    "kind": "response",
    "version": 1,
    "header_version": 0,
    "json": {"throttleTimeMs": 5, "responses": []},
    "hex": "0000000500000000",
}


def test_correct_vector_passes() -> None:
    assert check_protocol(EMPTY_FETCH) == []


def test_vector_of_an_undeclared_api_is_skipped() -> None:
    assert check_protocol(EMPTY_FETCH | {"api_key": 4711}) is None


WRONG: dict[str, tuple[Vector, str]] = {
    "a value": ({"json": {"throttleTimeMs": 6, "responses": []}}, "json.throttleTimeMs: 5 instead of 6"),
    "a type": ({"json": {"throttleTimeMs": True, "responses": []}}, "json.throttleTimeMs: 5 instead of True"),
    "an extra field": ({"json": {"responses": []}}, "json: fields"),
    "an extra element": ({"json": {"throttleTimeMs": 5, "responses": [{}]}}, "json.responses: "),
    "the header": ({"header_version": 1}, "header_version: 0 instead of 1"),
    "a tag": ({"unknown_tagged_fields": [{"path": [], "tag": 1, "hex": ""}]}, "unknown_tagged_fields: "),
}


@pytest.mark.parametrize(("changed", "failure"), WRONG.values(), ids=WRONG)
def test_wrong_vector_fails_at_its_first_difference(changed: Vector, failure: str) -> None:
    failures = check_line(json.dumps(EMPTY_FETCH | changed), check_protocol)
    assert failures
    assert failures[0].startswith(f"Fetch response 1: {failure}")


def test_unreadable_bytes_and_invalid_json_are_failures() -> None:
    assert check_line(json.dumps(EMPTY_FETCH | {"hex": "00"}), check_protocol) == [
        "Fetch response 1: RemoteProtocolError: FetchResponse v1: truncated (at byte 1 of 1)"
    ]
    assert "not JSON" in str(check_line("{", check_protocol))


def test_runner_counts_per_file_and_in_total(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    right, wrong, foreign = (
        json.dumps(EMPTY_FETCH | changed) for changed in ({}, {"header_version": 1}, {"api_key": 4711})
    )
    (tmp_path / "protocol-x.jsonl").write_text(f"{right}\n{wrong}\n\n{foreign}\n", encoding="utf-8")
    with gzip.open(tmp_path / "protocol-y.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(f"{right}\n")
    (tmp_path / "unheard_of.jsonl").write_text("{}\n{}\n", encoding="utf-8")
    (tmp_path / "MANIFEST.json").write_text("{}", encoding="utf-8")
    assert main([str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert captured.out.splitlines() == [
        f"{tmp_path}/protocol-x.jsonl: 1 passed, 1 failed, 1 skipped",
        f"{tmp_path}/protocol-y.jsonl.gz: 1 passed, 0 failed, 0 skipped",
        f"{tmp_path}/unheard_of.jsonl: 0 passed, 0 failed, 2 skipped (kind not built)",
        "2 passed, 1 failed, 3 skipped",
    ]
    assert captured.err.startswith(f"{tmp_path}/protocol-x.jsonl:2: Fetch response 1: header_version")


def test_missing_vectors_are_wrong_usage(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 2
    assert main([]) == 2


def test_manifest_describes_the_files() -> None:
    described = json.loads((VECTORS / "MANIFEST.json").read_text())["files"]
    found = {}
    for file in vector_files("*"):
        text = lzma.decompress(file.read_bytes())
        found[file.stem] = (text.count(b"\n"), len(text), sha256(text).hexdigest())
    assert {name: (row["lines"], row["bytes"], row["sha256"]) for name, row in described.items()} == found
