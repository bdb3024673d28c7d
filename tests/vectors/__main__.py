"""`python -m tests.vectors PATH...`: check every vector file at or below each path (README.md).

Standard output has one line per file and ends with `N passed, N failed, N skipped`; failures go to standard error. The
exit code is 0 without failures, 1 with failures, and 2 without any vector file.
"""

import gzip
import json
import logging
import lzma
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import IO, NamedTuple

from tests.vectors import Check, Kinds, Vector

SUFFIXES = (".jsonl", ".jsonl.gz", ".jsonl.xz")
# One module per family. The files of a missing family are skipped.
MODULES = ("protocol", "records", "log_append", "quotas", "client")
SHOWN_FAILURES = 20  # per file: enough to see a pattern
NAMING_FIELDS = ("id", "name", "kind", "version", "what")  # identify a vector for a reader


class Count(NamedTuple):
    passed: int
    failed: int
    skipped: int

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def main(arguments: list[str]) -> int:
    """Check all files under `arguments`; return the exit code."""
    files = [file for argument in arguments for file in vector_files(Path(argument))]
    if not files:
        print("usage: python -m tests.vectors PATH...  (no .jsonl, .jsonl.gz or .jsonl.xz file there)", file=sys.stderr)
        return 2
    kinds = built_kinds()
    total = Count(0, 0, 0)
    for file in files:
        check = check_for(file, kinds)
        count = check_file(file, check)
        print(f"{file}: {count}" + (" (kind not built)" if check is None else ""), flush=True)
        total = Count(*map(sum, zip(total, count, strict=True)))
    print(total)
    return 1 if total.failed else 0


def vector_files(path: Path) -> list[Path]:
    """Return the vector files at or below `path`, sorted by name."""
    if path.is_file():
        return [path]
    return sorted(file for file in path.rglob("*") if file.name.endswith(SUFFIXES) and file.is_file())


def built_kinds() -> Kinds:
    """Return the kinds of all modules."""
    kinds: dict[str, Check] = {}
    for name in MODULES:
        module = f"tests.vectors.{name}"
        if find_spec(module) is not None:
            kinds.update(import_module(module).KINDS)
    return kinds


def check_for(file: Path, kinds: Kinds) -> Check | None:
    """Return the check of the longest kind that starts the file's name; None if there is none."""
    # `records-` and `records_invalid-`: the hyphen before the jar's version is not part of the kind.
    named = {kind.rstrip("-"): check for kind, check in kinds.items()}
    matching = [kind for kind in named if file.name.startswith(kind)]
    return named[max(matching, key=len)] if matching else None


def check_file(file: Path, check: Check | None) -> Count:
    """Check each line of `file`, and print the failures to standard error."""
    passed = failed = skipped = 0
    for number, line in lines(file):
        failures = None if check is None else check_line(line, check)
        if failures is None:
            skipped += 1
        elif failures:
            failed += 1
            if failed <= SHOWN_FAILURES:
                print(f"{file}:{number}: {'; '.join(failures)}", file=sys.stderr)
        else:
            passed += 1
    if failed > SHOWN_FAILURES:
        print(f"{file}: {failed - SHOWN_FAILURES} more failures", file=sys.stderr)
    return Count(passed, failed, skipped)


def opened(file: Path) -> IO[str]:
    """Return the text of a file that may be compressed."""
    if file.suffix == ".gz":
        return gzip.open(file, "rt", encoding="utf-8")
    return lzma.open(file, "rt", encoding="utf-8") if file.suffix == ".xz" else file.open(encoding="utf-8")


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """Yield numbers (from 1) and texts of the nonempty lines."""
    with opened(file) as stream:
        for number, line in enumerate(stream, start=1):
            if line.strip():
                yield number, line


def check_line(line: str, check: Check) -> list[str] | None:
    """Return the differences that `check` finds, each preceded by the vector's name."""
    try:
        vector = json.loads(line)
    except ValueError as error:
        return [f"not JSON: {error}"]
    try:
        failures = check(vector)
    except Exception as error:  # a crash fails only its vector
        failures = [f"{type(error).__name__}: {error}"]
    return failures and [f"{name_of(vector)}: {failure}" for failure in failures]


def name_of(vector: Vector) -> str:
    """Return a readable name of this vector."""
    return " ".join(str(vector[field]) for field in NAMING_FIELDS if vector.get(field) is not None)


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # warnings are compared, not shown
    sys.exit(main(sys.argv[1:]))
