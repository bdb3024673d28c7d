"""The small text files of a log directory: written whole, under another name first, so that they are never half there.

Checkpoints are Kafka's CheckpointFile: version 0, the number of lines, the lines.
"""

import os
from collections.abc import Iterable, Mapping

_VERSION = "0"


class UnreadableFileError(Exception):
    """A file that is not what it should be; says so in words that name it."""


def write_atomically(path: str, content: str | bytes, *, sync: bool) -> None:
    """Replaces the file; with `sync` it is on the disk before it has its name."""
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
    """Writes over the file that is there, which is ten times faster on a file system that flushes what is replaced.

    For one that is made again where it should not be right.
    """
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
    """The words of each line; none where there is no such file. Raises UnreadableFileError."""
    try:
        with open(path, encoding="utf-8") as file:
            version, count, *lines = file.read().splitlines()
    except FileNotFoundError:
        return []
    except ValueError:
        raise UnreadableFileError(f"{path}: is no checkpoint") from None
    if version != _VERSION:
        raise UnreadableFileError(f"{path}: is of version {version}, only {_VERSION} is known")
    if count != str(len(lines)):
        raise UnreadableFileError(f"{path}: says it has {count} entries, and has {len(lines)}")
    return [line.split() for line in lines]


def write_offsets(path: str, offsets: Mapping[tuple[str, int], int]) -> None:
    """A checkpoint of one offset for each partition (OffsetCheckpointFile)."""
    lines = (f"{topic} {index} {offset}" for (topic, index), offset in offsets.items())
    write_checkpoint(path, lines)


def read_offsets(path: str) -> dict[tuple[str, int], int]:
    """Raises UnreadableFileError."""
    try:
        return {(topic, int(index)): int(offset) for topic, index, offset in read_checkpoint(path)}
    except ValueError:
        raise UnreadableFileError(f"{path}: has a line that is not TOPIC PARTITION OFFSET") from None
