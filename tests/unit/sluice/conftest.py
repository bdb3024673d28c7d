"""An empty journal, for tests that fill one."""

import pytest

from tests.support.journals import Journal


@pytest.fixture
def journal() -> Journal:
    return Journal()
