"""Traces of a broker: `write_trace`, and SLUICE_TRACE for tests without a plugin.

A problem of the file does not change the result of a test.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from sluice.embedded.traces import started
from sluice.errors import SluiceError

from .recorded_test import RecordedTest, failure_of, file_stem
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


FOLDER = "SLUICE_TRACE"
_NOTE = "sluice trace: "


def write_trace(broker: started.Recordable, path: "os.PathLike[str] | str") -> None:
    try:
        write_file(Path(path), RecordedTest(""), [broker._recorded()])
    except OSError as error:
        raise SluiceError(f"{os.fspath(path)}: cannot write the trace: {error.strerror or error}") from None


def note_block(broker: started.Recordable, error: BaseException | None) -> None:
    """Note the trace of an exception that leaves the `with` block of a broker."""
    if isinstance(error, Exception) and error.__traceback__ is not None:
        block = error.__traceback__.tb_frame.f_code
        function = block.co_qualname.replace("<locals>.", "").strip("<>")
        note_trace(broker, error, f"{Path(block.co_filename).stem}.{function}", block.co_filename)


def note_trace(broker: started.Recordable, error: Exception, name: str, test_file: str) -> None:
    """If SLUICE_TRACE is set, write a trace into this folder, and name the file in a note of the exception."""
    folder = os.environ.get(FOLDER)
    if not folder or started.recorder is not None:  # the pytest plugin writes one for all brokers of a test
        return
    try:
        recorded = broker._recorded()
    except SluiceError:  # without a journal
        return
    if recorded.events:
        before = sum(note.startswith(_NOTE) for note in getattr(error, "__notes__", ()))  # of inner blocks
        test = RecordedTest(f"{name}-{before + 1}" if before else name)
        test.failure = failure_of(error, test_file)
        error.add_note(f"{_NOTE}{write_in_folder(Path(folder), test, [recorded])}")
