"""Names of the files in a log directory (Kafka's LogFileUtils, UnifiedLog and LogManager)."""

import re

LOG, INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT = ".log", ".index", ".timeindex", ".txnindex", ".snapshot"
SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TXN_INDEX)
# Appended to the others: incomplete; complete but not yet in place; to be deleted.
CLEANED, SWAP, DELETED = ".cleaned", ".swap", ".deleted"
LEADER_EPOCHS, PARTITION_METADATA = "leader-epoch-checkpoint", "partition.metadata"
LOCK, META_PROPERTIES, CLEAN_SHUTDOWN = ".lock", "meta.properties", ".kafka_cleanshutdown"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"

# A valid topic name (Kafka's Topic), except that of the metadata log, whose directory belongs to the controller.
_PARTITION = re.compile(
    r"(?!(?:\.|\.\.|__cluster_metadata)-[0-9]+$)(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<index>0|[1-9][0-9]*)"
)
_OF_OFFSET = re.compile(
    r"(?P<offset>[0-9]{20})(?P<suffix>\.(log|index|timeindex|txnindex|snapshot)(\.(cleaned|swap|deleted))?)"
)
_DELETE_DIRECTORY, _STRAY_DIRECTORY = "-delete", "-stray"
_MOST_CHARS = 255


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020}{suffix}"


def parse_file_name(name: str) -> tuple[int, str] | None:
    match = _OF_OFFSET.fullmatch(name)
    return None if match is None else (int(match["offset"]), match["suffix"])


def parse_partition(name: str) -> tuple[str, int] | None:
    """Return the topic and index of a partition's directory; None for the metadata log and for any other name."""
    match = _PARTITION.fullmatch(name)
    return None if match is None else (match["topic"], int(match["index"]))


def deleted_directory(name: str, unique: str) -> str:
    return _renamed(name, f".{unique}{_DELETE_DIRECTORY}")


def stray_directory(name: str, unique: str) -> str:
    return _renamed(name, f".{unique}{_STRAY_DIRECTORY}")


def _renamed(name: str, suffix: str) -> str:
    topic, _, index = name.rpartition("-")
    suffix = f"-{index}{suffix}"
    return topic[: _MOST_CHARS - len(suffix)] + suffix


def is_deleted_directory(name: str) -> bool:
    return name.endswith(_DELETE_DIRECTORY)
