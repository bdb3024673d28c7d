"""Write docs/audit-matrix.md from a report (campaign `audit-matrix`): `python -m tools.docs.audit_matrix FOLDER`."""

import sys
from pathlib import Path

from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.report.files import read_report
from sluice.audit.report.markdown import markdown

PAGE = Path(__file__).parents[2] / "docs" / "audit-matrix.md"
_ABOVE = """\
# What clients do when the broker fails

These are the results of [the audit](audit.md) for ten clients: which statements of the KIPs each follows, and where it
deviates. Use them to choose a client or its settings; [Read a verdict](audit.md#read-a-verdict) explains the signs.

Each deviation links to the place in the client's documentation or source that explains it, with the version that was
read: the measured version, or the nearest one with public source. Results apply to these versions, with these settings,
on this machine. If you maintain a client and find an error, please report it.

`java` and `java-4` are Apache Kafka's own client, `confluent-kafka` uses librdkafka, and `sluice` is [sluice's own
client](producer.md). `tools/campaign run audit-matrix` rewrites this page in half an hour. [Defects found in
clients](findings/index.md) describes the worst results.

"""


def page_of(folder: Path) -> str:
    """Return the page of a report."""
    return _ABOVE + markdown(read_report(folder), {each.id: each.text for each in STATEMENTS.values()})


if __name__ == "__main__":
    PAGE.write_text(page_of(Path(sys.argv[1])), encoding="utf-8")
