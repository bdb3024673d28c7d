"""Start of `sluice serve`."""

import pytest

from sluice.cli.serve.run import has_writelines_bug

PYTHON_VERSIONS = [
    ((3, 11, 7), False),
    ((3, 12, 0), True),
    ((3, 12, 8), True),
    ((3, 12, 9), False),
    ((3, 13, 1), True),
    ((3, 13, 2), False),
    ((3, 14, 0), False),
]


@pytest.mark.parametrize(("version", "expected"), PYTHON_VERSIONS)
def test_versions_of_python_with_cve_2024_12254(version: tuple[int, int, int], expected: bool) -> None:
    assert has_writelines_bug(version) is expected
