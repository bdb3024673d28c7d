"""What one client does in a run of the lint matrix, for drivers in all languages.

Every driver supports the same jobs, except where its client cannot do them. Settings have the names of the client's own
library: a job without settings is the client with its defaults.
"""

from collections.abc import Mapping, Sequence
from typing import Literal
from uuid import uuid4

import msgspec

Value = str | int | float | bool | None | list[str]
Settings = dict[str, Value]
Role = Literal["produce", "consume", "copy"]
Commit = Literal["auto", "record", "poll", "none", "ahead", "back"]

# What a consumer commits after a poll, relative to what it read; of "record", after each record.
OFFSETS_APART: Mapping[str, Sequence[int]] = {"record": (0,), "poll": (0,), "ahead": (10,), "back": (0, -10)}


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """The work of one client.

    A producer sends `bursts` bursts of `records`. With a transactional id, each burst is a transaction. A consumer runs
    for `for_ms`, then closes. A copier is a consumer that produces what it read to `output`, in a transaction for each
    poll that returned records.
    """

    role: Role
    settings: Settings = {}
    client_id: str = "app"  # "": the default of the library
    topics: tuple[str, ...] = ("orders",)
    start_ms: int = 0  # delay before it starts

    # producers
    bursts: int = 20
    records: int = 1  # in each burst
    size: int = 100  # bytes of a value
    every_ms: float = 0  # pause after each burst
    keys: int = 0  # number of distinct keys, used in turn; 0: records have no key
    hot_percent: int = 0  # of records have the first key
    wait: bool = True  # until a burst is acknowledged, before the next one
    wait_each: bool = False  # the same for each record of a burst
    new_client: bool = False  # create a client for each burst, or poll
    skew_ms: int = 0  # added to the timestamps of records; 0: the client sets them

    # transactions
    transactional_id: str = ""
    hold_ms: float = 0  # between the last record of a transaction and its end
    abort: bool = False  # with commit="none", the last transaction is not ended
    output: str = "copies"
    output_settings: Settings = {}  # of a copier's producer; `settings` are of its consumer

    # consumers
    group: str = ""  # "": assigns partitions itself; {life} is replaced by another text in each of its lifetimes
    partitions: int = 0  # of each topic to assign, without a group; 0: all
    instance_id: str = ""
    for_ms: float = 3_000
    poll_ms: int = 200  # timeout of a poll
    process_ms: float = 0  # work after each poll that returned records, without a poll
    rest_ms: float = 0  # pause after every poll
    most: int = 500  # records of a poll
    commit: Commit = "auto"  # auto: by the library; others: as in OFFSETS_APART
    rejoin_ms: float = 0  # close, and start again
    leave: bool = True  # close the client in the end; else leave a producer open, and end a consumer's process

    def next_life(self) -> "Job":
        """Return the job of the next lifetime of a consumer."""
        return msgspec.structs.replace(self, group=self.group.replace("{life}", uuid4().hex))

    def leaves_open(self, burst: int) -> bool:
        """Return whether the transaction of this burst is not ended."""
        return self.commit == "none" and burst == self.bursts - 1

    def key_of(self, number: int) -> bytes | None:
        """Return the key of a record; of each hundred consecutive records, `hot_percent` have the first key."""
        if not self.keys:
            return None
        return b"key-%d" % (0 if number * 37 % 100 < self.hot_percent else number % self.keys)

    def value_of(self, number: int) -> bytes:
        """Return the value of a record: a distinct text, which compresses well."""
        text = b"record %d, " % number
        return (text * (self.size // len(text) + 1))[: self.size]
