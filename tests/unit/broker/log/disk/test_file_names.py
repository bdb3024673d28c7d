"""Which directories belong to partitions, and that no other file of a data directory looks like one."""

import pytest

from sluice.broker.controller.metadata_log.files import METADATA_DIRECTORY
from sluice.broker.log.disk import file_names
from sluice.broker.log.disk.file_names import deleted_directory, parse_partition, stray_directory
from sluice.broker.metadata.topic import invalid_topic_name

UNIQUE = "0" * 32
LONGEST = "n" * 249
TOPICS = ("t", "a.b", "x-0", "meta.properties", "recovery-point-offset-checkpoint", "...", ".-0", LONGEST)
NO_TOPICS = ("", ".", "..", "a/b", "../a", "a b", "a\n", "ä", "a\0", LONGEST + "n")


@pytest.mark.parametrize("index", [0, 10, 2**31 - 1])
@pytest.mark.parametrize("topic", TOPICS)
def test_directory_of_a_partition(topic: str, index: int) -> None:
    assert invalid_topic_name(topic) is None
    assert parse_partition(f"{topic}-{index}") == (topic, index)


@pytest.mark.parametrize("topic", NO_TOPICS)
def test_invalid_topic_name_is_no_partition(topic: str) -> None:
    assert invalid_topic_name(topic) is not None
    assert parse_partition(f"{topic}-0") is None


OTHER_NAMES = [
    METADATA_DIRECTORY,
    "__cluster_metadata-1",
    "t",
    "t-",
    "t-01",
    "t-0\n",
    "t-0-future",
    *(value for name, value in vars(file_names).items() if name.isupper() and isinstance(value, str)),
    "reserved-space",
    "bootstrap.checkpoint",
    "remote-log-index-cache",
    *(rename(f"{topic}-0", UNIQUE) for topic in TOPICS for rename in (deleted_directory, stray_directory)),
]


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_other_name_of_a_data_directory_is_no_partition(name: str) -> None:
    assert parse_partition(name) is None


@pytest.mark.parametrize("rename", [deleted_directory, stray_directory])
def test_renamed_directories_of_one_topic_differ_and_are_not_too_long(rename: object) -> None:
    assert callable(rename)
    names = {rename(f"{LONGEST}-{index}", UNIQUE) for index in range(2)}
    assert [len(name) for name in names] == [255, 255]
