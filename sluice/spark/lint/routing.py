"""The routing of journal lines to the partitions that judge their clients and groups.

Lines are not decoded for this, which would take half as long as judging them: the text of the client's identity is cut
out of the line, and parsed once per client. Journals have it in one place; any other line is decoded.
"""

from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import NamedTuple
from zlib import crc32

import cramjam
import msgspec

from sluice.journal_events import ClientEvent, Gap, GroupState, Request, decode
from sluice.lint.rule import Scope

_ZSTD_LEVEL = 1
_CLIENT, _CLIENT_END, _GROUP = b'"client_id":', b',"principal":', b'"group_id":"'
_MOST_KNOWN = 100_000
_NO_EVENT = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


class Bundle(NamedTuple):
    """Lines of some clients or groups of one split, those of each in order, compressed."""

    scope: Scope
    lines: bytes


class _Identity(msgspec.Struct, forbid_unknown_fields=True):
    client_id: str
    software_name: str
    software_version: str


class Routed:
    """The lines of one split by partition, client and group.

    events: number of events
    lost: number of events that the journal had lost
    invalid: lines that are no events, with the reason
    """

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        # By partition, and there by client or group, whose lines stay together: its facts are then in the cache.
        self._lines: defaultdict[tuple[int, Scope], defaultdict[str, list[bytes]]]
        self._lines = defaultdict(partial(defaultdict, list))
        self._of_clients: dict[bytes, list[bytes]] = {}
        self._of_groups: dict[bytes, list[bytes]] = {}
        self.events = self.lost = 0
        self.invalid: list[tuple[bytes, str]] = []

    def take(self, block: bytes) -> None:
        """Add lines."""
        known, groups = self._of_clients, self._of_groups
        for line in block.split(b"\n"):
            begin = line.find(_CLIENT)
            end = line.find(_CLIENT_END, begin)
            lines = known.get(line[begin:end]) if 0 < begin < end else None
            if lines is None:
                if line.strip():
                    self._take_other(line, line[begin:end] if 0 < begin < end else b"")
                continue
            self.events += 1
            lines.append(line)
            begin = line.find(_GROUP, end) + len(_GROUP)
            if begin >= len(_GROUP) and line[begin] != 34:  # a quote: no group
                group = line[begin : line.find(b'"', begin)]
                lines = groups.get(group)
                if lines is None:
                    lines = self._lines_of_group(line, group)
                lines.append(line)

    def bundles(self) -> Iterator[tuple[int, Bundle]]:
        """Yield the lines of each partition."""
        for (partition, scope), by_key in self._lines.items():
            packed = bytes(cramjam.zstd.compress(b"\n".join(chain.from_iterable(by_key.values())), _ZSTD_LEVEL))
            yield partition, Bundle(scope, packed)

    def _take_other(self, line: bytes, identity: bytes) -> None:
        """Add a line of a new client, of no client, or in another form."""
        try:
            event = decode(line)
        except _NO_EVENT as error:
            self.invalid.append((line, str(error)))
            return
        self.events += 1
        if isinstance(event, Gap):
            self.lost += event.lost
        if isinstance(event, ClientEvent):
            lines = self._lines_of(Scope.CLIENT, f"{event.client_id}\0{event.software_name}\0{event.software_version}")
            lines.append(line)
            if _is_identity(identity) and len(self._of_clients) < _MOST_KNOWN:
                self._of_clients[identity] = lines
        if isinstance(event, Request | GroupState) and event.group_id:
            self._lines_of(Scope.GROUP, event.group_id).append(line)

    def _lines_of_group(self, line: bytes, group: bytes) -> list[bytes]:
        event = decode(line)
        assert isinstance(event, Request), "no other event of a client has a group id"
        lines = self._lines_of(Scope.GROUP, event.group_id)
        if b"\\" not in group and len(self._of_groups) < _MOST_KNOWN:  # an escaped quote ends the text early
            self._of_groups[group] = lines
        return lines

    def _lines_of(self, scope: Scope, key: str) -> list[bytes]:
        return self._lines[crc32(key.encode()) % self._partitions, scope][key]


def _is_identity(text: bytes) -> bool:
    """Return whether the text has the fields of the identity alone, so that it is the same in all lines of a client."""
    try:
        msgspec.json.decode(b"{%s}" % text, type=_Identity)
    except _NO_EVENT:
        return False
    return True


def unpacked(bundle: Bundle) -> bytes:
    return bytes(cramjam.zstd.decompress(bundle.lines))
