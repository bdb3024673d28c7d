"""The file of a trace, whose problems do not change the result of a test."""

from collections.abc import Sequence
from pathlib import Path

from .recorded_test import RecordedTest, file_stem
from .started import Recorded


def write_in_folder(folder: Path, test: RecordedTest, recorded: Sequence[Recorded], *, has_passed: bool = False) -> str:
    """Write the trace of a test, and return its path or, in one line, why it was not written.

    A failed test is compared with the trace of the last run that passed, if the folder has one.
    """
    stem = file_stem(test.name)
    path, passed = folder / f"{stem}.html", folder / f"{stem}.passed.html"
    if has_passed:
        path = passed
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_file(path, test, recorded, passed if passed.is_file() and not has_passed else None)
    except OSError as error:
        return f"{path}: cannot write the trace: {error.strerror or error}"
    except Exception as error:  # an error here must not hide the failure of the test
        return f"{path}: cannot write the trace: {error!r}"
    return str(path)


def write_file(path: Path, test: RecordedTest, recorded: Sequence[Recorded], compare: Path | None = None) -> None:
    """Raise OSError, or SluiceError if the other trace cannot be read."""
    from .written import write  # passing tests do not need it

    write(path, test, recorded, compare)
