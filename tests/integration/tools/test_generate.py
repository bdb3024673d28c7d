"""Every generated file is up to date."""

from pathlib import Path

import pytest

from tools.generate import GENERATED, ROOT


@pytest.mark.parametrize("file", GENERATED, ids=lambda file: str(file.relative_to(ROOT)))
def test_file_is_up_to_date(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == GENERATED[file](), "run make generate"
