"""Records of a share group (KIP-932) that a member acquired, and did not acknowledge in time."""

from collections.abc import Iterator

from sluice.journal_events import AcquisitionTimeout
from sluice.trace.described import counted
from sluice.trace.findings.history import Found, History, grouped, listed, seqs


def find(history: History) -> Iterator[Found]:
    for (group_id, topic), alike in grouped(
        history.of(AcquisitionTimeout), lambda one: (one.group_id, one.topic)
    ).items():
        first = alike[0]
        records = sum(one.last_offset - one.first_offset + 1 for one in alike)
        members = dict.fromkeys(one.member_id for one in alike)
        title = f"Group {group_id} did not acknowledge {counted(records, 'record')} of {topic} in time"
        text = f"The acquisition locks of {listed(members)} timed out, the first at {history.when(first.at_ns)}. "
        text += "The records are delivered again. Process fewer records per poll, or increase "
        text += "group.share.record.lock.duration.ms."
        yield Found("acquisition-timeout", "warning", title, text, first.at_ns, seqs(alike), [group_id, topic])
