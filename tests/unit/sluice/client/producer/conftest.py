"""The sender has no internal error in any test: it would wait, repeat the iteration, and hide the error."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def no_failure_of_the_sender(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert "the sender failed" not in [record.getMessage() for record in caplog.get_records("call")]
