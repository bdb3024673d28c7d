"""Killed brokers keep every acknowledged record, once and in order; damaged files never yield a wrong record."""

from pathlib import Path
from random import Random

import pytest

from tools.crash.bit_flips import flip_a_bit, problems, write_directories
from tools.crash.crashes import KINDS, survive

# The campaign `crash` kills 50 times per case; the normal suite kills a few times.
_FEW = 2
_FEW_FLIPS = 30  # take about a second
_FLIPS_PER_KILL = 20  # the campaign: 1,000
_FLUSHES = ("log.flush.interval.messages=1",)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("properties", [(), _FLUSHES], ids=["with the default flush", "with flush.messages=1"])
def test_acknowledged_records_survive(
    tmp_path: Path, kind: str, properties: tuple[str, ...], pytestconfig: pytest.Config
) -> None:
    kills = pytestconfig.getoption("--kills") or _FEW
    # Small segments and frequent checkpoints, so that kills interrupt those too.
    small = ("log.segment.bytes=50000", "log.flush.offset.checkpoint.interval.ms=150")
    records = survive(tmp_path, kind, kills, seed=kills, properties=[*small, *properties])
    print(f"{kills} kills, {records} {kind} records acknowledged, all found")
    assert records > kills


def test_flipped_bit_yields_no_wrong_record_and_no_silent_loss(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    kills = pytestconfig.getoption("--kills")
    flips = kills * _FLIPS_PER_KILL if kills else _FEW_FLIPS
    directories = write_directories(tmp_path)
    random = Random(flips)
    outcomes = [flip_a_bit(directories, tmp_path, random) for _ in range(flips)]
    found = [
        f"flip {number}, {one.flip}: {text}"
        for number, one in enumerate(outcomes)
        for text in problems(directories, one)
    ]
    assert not found, "\n".join(found)
    refused, reported = sum(one.error is not None for one in outcomes), sum(bool(one.lines) for one in outcomes)
    print(f"{flips} flips, {refused} starts refused, {reported} with log lines")
    assert refused
    assert reported
