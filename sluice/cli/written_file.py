"""Files that commands write."""

from pathlib import Path

from sluice.errors import SluiceError


def write_file(path: Path, data: str | bytes) -> None:
    """Write text as UTF-8, or bytes. Raises SluiceError."""
    try:
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    except OSError as error:
        raise SluiceError(f"{path}: cannot write: {error.strerror}") from None
