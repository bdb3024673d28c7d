"""Three listings of generated source that show the effect of generator changes.

Renew them with `python -m tests.unit.protocol.test_golden`.
"""

from pathlib import Path

import pytest

from sluice.protocol.apis.fetch import FetchResponse
from sluice.protocol.apis.metadata import MetadataRequest
from sluice.protocol.apis.produce import ProduceRequest
from sluice.protocol.codec.compile import source
from sluice.protocol.message import Message

GOLDEN = Path(__file__).with_name("golden")
# The most frequent request with its fast functions, a classic message with a nullable array, and a message with
# tagged structs, nulls and records.
LISTINGS: list[tuple[type[Message], int]] = [(ProduceRequest, 9), (MetadataRequest, 4), (FetchResponse, 12)]


def golden(cls: type[Message], version: int) -> Path:
    """Return the path of a listing."""
    return GOLDEN / f"{cls.__name__}_v{version}.txt"


@pytest.mark.parametrize(("cls", "version"), LISTINGS, ids=lambda part: getattr(part, "__name__", f"v{part}"))
def test_generated_source_equals_the_reviewed_listing(cls: type[Message], version: int) -> None:
    assert source(cls, version) == golden(cls, version).read_text(encoding="utf-8")


if __name__ == "__main__":
    for listing in LISTINGS:
        golden(*listing).write_text(source(*listing), encoding="utf-8")
