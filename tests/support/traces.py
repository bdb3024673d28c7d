"""Traces in files."""

import gzip
import re
from base64 import b64decode
from pathlib import Path

import msgspec

from sluice.trace.model import Trace


def read_trace(file: Path) -> Trace:
    """Return the trace in an HTML file, with that of the comparison."""
    (data,) = re.findall(r'id="trace">([^<]+)</script>', file.read_text())
    return msgspec.json.decode(gzip.decompress(b64decode(data)), type=Trace)
