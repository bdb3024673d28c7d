"""The small text files of a log directory.

Checkpoints are Kafka's CheckpointFile: version 0, the number of lines, the lines.
"""

import os
from collections.abc import Iterable, Mapping

_VERSION = "0"


class UnreadableFileError(Exception):
    """A malformed file; the message names it."""


def write_atomically(path: str, content: str | bytes, *, sync: bool) -> None:
    """With `sync`, flush the content before replacing the file."""
    data = content.encode() if isinstance(content, str) else content
    temporary = f"{path}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        os.write(handle, data)
        if sync:
            os.fsync(handle)
    finally:
        os.close(handle)
    os.replace(temporary, path)


def write_checkpoint(path: str, lines: Iterable[str]) -> None:
    write_atomically(path, _checkpoint(lines), sync=True)


def overwrite_checkpoint(path: str, lines: Iterable[str]) -> None:
    # For content that can be rebuilt. Ten times faster on file systems that flush a replaced file.
    data = _checkpoint(lines).encode()
    handle = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
    try:
        os.pwrite(handle, data, 0)
        os.ftruncate(handle, len(data))
    finally:
        os.close(handle)


def _checkpoint(lines: Iterable[str]) -> str:
    entries = list(lines)
    return "\n".join([_VERSION, str(len(entries)), *entries, ""])


def read_checkpoint(path: str) -> list[list[str]]:
    try:
        with open(path, encoding="utf-8") as file:
            version, count, *lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    except ValueError:
        raise UnreadableFileError(f"{path}: not a checkpoint") from None
    if version != _VERSION:
        raise UnreadableFileError(f"{path}: unsupported version; expected {_VERSION}, got {version}")
    if count != str(len(lines)):
        raise UnreadableFileError(f"{path}: wrong number of entries; expected {count}, got {len(lines)}")
    return [line.split() for line in lines]


def write_offsets(path: str, offsets: Mapping[str, int]) -> None:
    """Write offsets by the name of a log, such as "topic-0"."""
    write_checkpoint(path, (f"{' '.join(name.rsplit('-', 1))} {offset}" for name, offset in offsets.items()))


def read_offsets(path: str) -> dict[str, int]:
    try:
        return {f"{topic}-{int(index)}": int(offset) for topic, index, offset in read_checkpoint(path)}
    except ValueError:
        raise UnreadableFileError(f"{path}: malformed line; expected TOPIC PARTITION OFFSET") from None
