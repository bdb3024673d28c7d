"""The observations of an audit as files, so that a report can be judged again: one file per client."""

import gzip
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sluice.audit.judge.model.observation import Observation
from sluice.errors import SluiceError

_LEVEL = 3  # events repeat most of their fields: higher levels save little


def observation_file(report: Path, number: int) -> Path:
    """Return the file of the report's client with this number, from 0."""
    return report / "observations" / f"{number}.msgpack.gz"


def write_observations(file: Path, observations: Sequence[Observation]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(msgspec.msgpack.encode(observations), _LEVEL, mtime=0))
    except OSError as error:
        raise SluiceError(f"{file}: cannot write the observations: {error.strerror}") from None


def read_observations(file: Path) -> list[Observation]:
    """Raise SluiceError if the file is missing or not of this version."""
    try:
        return msgspec.msgpack.decode(gzip.decompress(file.read_bytes()), type=list[Observation])
    except OSError as error:
        raise SluiceError(f"{file}: cannot read the observations: {error.strerror or error}") from None
    except (msgspec.MsgspecError, EOFError) as error:
        raise SluiceError(f"{file}: expected the observations of an audit of this version: {error}") from None
