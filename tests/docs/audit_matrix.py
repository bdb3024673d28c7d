"""Writes docs/audit-matrix.md of a report, as `make audit` does: `python -m tests.docs.audit_matrix FOLDER`."""

import sys
from pathlib import Path

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.report.files import read_report
from sluice.audit.report.markdown import markdown

PAGE = Path(__file__).parents[2] / "docs" / "audit-matrix.md"
_ABOVE = """\
# What clients do when the broker fails

What [the audit](audit.md) measured, which also says how to read this. `make audit` writes this page anew, in a quarter
of an hour. What each client deviates in was looked up in its documentation or source, and is told in our words; the
link goes to the place. Before it stands what was read: the version measured, or the nearest one whose source is public.
Whatever is said here is about these versions, with these settings, on this machine; authors of clients who find it
wrong are asked to say so.

`java` is Apache Kafka's own client, `confluent-kafka` is librdkafka, and `sluice` is [our own](producer.md).

"""


def page_of(folder: Path) -> str:
    """The page of a report."""
    return _ABOVE + markdown(read_report(folder), {each.id: each.text for each in STATEMENTS.values()})


if __name__ == "__main__":
    PAGE.write_text(page_of(Path(sys.argv[1])), encoding="utf-8")
