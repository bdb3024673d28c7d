"""Writing a trace as an HTML file, and reading the trace in one."""

import binascii
import gzip
import re
import zlib
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path

import msgspec

from sluice.errors import SluiceError
from sluice.text.error_text import expected

from .build import build
from .compare import compare as compared
from .model import VERSION, Trace
from .page import render
from .recording import Recorded, Run

_DATA = re.compile(r'<script type="application/gzip" id="trace">([^<]*)</script>')


def write_trace(path: Path, recorded: Sequence[Recorded], run: Run, compare: Path | None = None) -> None:
    """Write the trace of a run.

    Args:
        path: HTML file to write.
        recorded: The events of each cluster.
        run: The test.
        compare: HTML file of an earlier trace, to show beside this one.

    Raises:
        SluiceError: `compare` is not a trace.
    """
    trace = build(recorded, run)
    if compare is not None:
        trace.compare = compared(trace, read_trace(compare))
    path.write_text(render(trace), encoding="utf-8")


def read_trace(path: Path) -> Trace:
    """Return the trace in an HTML file. Raises SluiceError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise SluiceError(f"{path}: cannot read: {problem}") from None
    try:
        found = _DATA.search(text)
        trace = msgspec.json.decode(gzip.decompress(b64decode(found[1] if found else "")), type=Trace)
    except (gzip.BadGzipFile, EOFError, binascii.Error, zlib.error, msgspec.DecodeError):
        raise SluiceError(f"{path}: {expected('a trace that this version of sluice wrote', 'another file')}") from None
    if trace.version != VERSION:
        raise SluiceError(f"{path}: {expected(f'a trace of version {VERSION}', trace.version)}")
    trace.compare = None
    return trace
