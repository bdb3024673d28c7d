"""A new metadata log."""

from pathlib import Path

import pytest

from sluice.broker.controller.metadata_log.metadata_log import MetadataLog
from tests.unit.broker.controller.metadata_log.logs import open_log


@pytest.fixture
def log(tmp_path: Path) -> MetadataLog:
    return open_log(tmp_path)
