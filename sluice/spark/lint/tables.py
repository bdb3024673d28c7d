"""The Parquet tables of the lint job, and their rows.

- `clients`: a row for each client
- `settings`: a row for each setting of a client
- `findings`: a row for each finding
- `undecided`: a row for each rule that lacks evidence about a client, group or topic
- `quarantine`: lines that are no events
"""

from collections.abc import Iterator

import msgspec

from sluice.lint.findings import Judged
from sluice.spark.plan.tables import Columns

CLIENTS, SETTINGS, FINDINGS, UNDECIDED, QUARANTINE = "clients", "settings", "findings", "undecided", "quarantine"
_IDENTITY: Columns = {"client_id": str, "software_name": str, "software_version": str}
_SUBJECT: Columns = {"rule": str, "scope": str, "subject": str}
TABLES: dict[str, Columns] = {
    CLIENTS: {"journal": str, **_IDENTITY, "requests": int, "began_ns": int, "ended_ns": int},
    SETTINGS: {"journal": str, **_IDENTITY, "name": str, "value": str, "certainty": str, "basis": str},
    FINDINGS: {"journal": str, **_SUBJECT, "severity": str, "clients": str, "evidence": str},  # the last two: JSON
    UNDECIDED: {"journal": str, **_SUBJECT, "record": str},
    QUARANTINE: {"journal": str, "reason": str, "text": str},
}
Row = tuple[object, ...]


def rows_of(judged: Judged, journal: str) -> Iterator[tuple[str, Row]]:
    """Yield the rows of what was found about one client, group or topic, with their table."""
    if judged.client is not None:
        each = judged.client
        identity = each.key.client_id, each.key.software_name, each.key.software_version
        yield CLIENTS, (journal, *identity, each.requests, each.began_ns, each.ended_ns)
        for one in each.settings:
            yield SETTINGS, (journal, *identity, one.name, one.value, str(one.certainty), one.basis)
    for finding in judged.findings:
        clients, evidence = _json(finding.clients), _json(finding.evidence)
        subject = finding.rule, str(finding.scope), finding.subject
        yield FINDINGS, (journal, *subject, str(finding.severity), clients, evidence)
    for undecided in judged.undecided:
        yield UNDECIDED, (journal, undecided.rule, str(undecided.scope), undecided.subject, undecided.record)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
