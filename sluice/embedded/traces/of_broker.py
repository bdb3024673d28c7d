"""Traces of a broker: `write_trace`, and SLUICE_TRACE for tests without a plugin."""

import os
from pathlib import Path

from sluice.errors import SluiceError

from . import started
from .files import write_file, write_in_folder
from .recorded_test import RecordedTest, failure_of

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
