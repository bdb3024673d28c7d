"""Baselines: written findings are known, whatever the version of the client; errors are one line."""

from pathlib import Path

import pytest

from sluice.errors import SluiceError
from sluice.lint.baseline import baseline, read_baseline
from sluice.lint.clients import ClientKey
from tests.support.lint_results import finding, result


def test_what_is_written_is_known(tmp_path: Path) -> None:
    path = tmp_path / "known.json"
    path.write_text(baseline(result().findings))
    known = read_baseline(path)
    assert {each.identity for each in result().findings} == known
    upgraded, other = ClientKey("shop", "apache-kafka-java", "5.0"), ClientKey("shop", "librdkafka", "2.14")
    assert finding("lost-records", str(upgraded), upgraded).identity in known
    assert finding("lost-records", str(other), other).identity not in known


INVALID = [
    ("", "expected a file of --write-baseline: Input data was truncated"),
    ("[]", "expected a file of --write-baseline: Expected `object`, got `array`"),
    ('{"version": 1}', "expected a file of --write-baseline: Object missing required field `findings`"),
]


@pytest.mark.parametrize(("text", "problem"), INVALID)
def test_an_invalid_baseline_is_rejected(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(SluiceError, match=f"^{path}: {problem}"):
        read_baseline(path)


def test_a_missing_baseline_is_reported(tmp_path: Path) -> None:
    with pytest.raises(SluiceError, match="cannot read the baseline: No such file"):
        read_baseline(tmp_path / "none")
