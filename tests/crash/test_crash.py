"""Every record that a killed broker has acknowledged is in the log, once and in order."""

from pathlib import Path

import pytest

from tests.crash.crashes import survive

# `make test-crash` kills 50 times per case; the normal suite kills a few times.
_FEW = 3
_FLUSHES = ("log.flush.interval.messages=1",)


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "properties",
    [
        pytest.param((), id="with the default flush"),
        pytest.param(_FLUSHES, id="with flush.messages=1"),
    ],
)
def test_acknowledged_records_survive(tmp_path: Path, properties: tuple[str, ...], pytestconfig: pytest.Config) -> None:
    kills = pytestconfig.getoption("--kills") or _FEW
    # Small segments and frequent checkpoints, so that kills interrupt those too.
    small = ("log.segment.bytes=50000", "log.flush.offset.checkpoint.interval.ms=150")
    records = survive(tmp_path, kills, seed=kills, properties=[*small, *properties])
    print(f"{kills} kills, {records} records acknowledged, all found")
    assert records > kills
