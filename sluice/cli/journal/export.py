"""Writers of events to files: NDJSON, or Parquet if pyarrow is installed."""

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path

from sluice.errors import ConfigError, SluiceError
from sluice.journal_events import Gap, decode

# Returns the numbers of written and lost events.
Writer = Callable[[str, Iterable[str]], tuple[int, int]]


def writer_of(file: str) -> Writer:
    for ending, write in _WRITERS.items():
        if file.endswith(ending):
            if write is _write_parquet and find_spec("pyarrow") is None:
                raise SluiceError(f"{file}: Parquet needs pyarrow, which is not installed; install it, or use .ndjson")
            return write
    raise ConfigError(f"{file}: expected a name that ends in {' or '.join(_WRITERS)}")


def _write_ndjson(file: str, lines: Iterable[str]) -> tuple[int, int]:
    count = lost = 0
    # The first page is fetched before the file is created, so an unreachable broker leaves no file.
    found = iter(lines)
    first = next(found, None)
    with Path(file).open("w", encoding="utf-8") as out:
        while first is not None:
            out.write(first + "\n")
            count, lost = count + 1, lost + _lost(first)
            first = next(found, None)
    return count, lost


def _write_parquet(file: str, lines: Iterable[str]) -> tuple[int, int]:
    from sluice.spark.journal_parquet import write

    kept = list(lines)
    write(file, kept)
    return len(kept), sum(map(_lost, kept))


def _lost(line: str) -> int:
    event = decode(line)
    return event.lost if isinstance(event, Gap) else 0


_WRITERS: dict[str, Writer] = {".ndjson": _write_ndjson, ".parquet": _write_parquet}
