"""Comparison of two reports, such as before and after a change of a client.

Clients are matched by name, not by version. A verdict that is no longer decided is neither better nor worse, and is
reported separately.
"""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from sluice.audit.judge.model.verdict import AuditResult, SubjectResult, Verdict

from .words import DIFFERS, PASS, PREDATES, VIOLATES, VerdictStyle, finding_words, in_order, milliseconds, style_of

# From worst to best; the other styles are not results about the client.
_RANKS = {VIOLATES: 0, DIFFERS: 1, PREDATES: 2, PASS: 3}
# A recovery time that changes by this factor, and by this many ms, is not chance.
_LONGER, _LEAST_MS = 2.0, 500.0


class Kind(StrEnum):
    WORSE = "worse"
    BETTER = "better"
    UNDECIDED = "undecided"
    NEW = "new"
    GONE = "gone"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One change.

    kind: better, worse, or other
    what: a statement, such as KIP-580/1, or a finding or a recovery with its probe; "" for the whole client
    """

    kind: Kind
    subject: str
    what: str
    before: str
    now: str
    why: str = ""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The changes from one report to another.

    versions: earlier and later version of each client in both
    changes: from worst to best
    same: number of unchanged verdicts
    """

    before: str
    now: str
    versions: dict[str, tuple[str, str]]
    changes: list[Change]
    same: int


def compare(before: AuditResult, now: AuditResult) -> Comparison:
    old, new = _by_name(before), _by_name(now)
    changes: list[Change] = []
    same = 0
    for name in [*old, *(name for name in new if name not in old)]:
        if name not in new:
            changes.append(Change(kind=Kind.GONE, subject=name, what="", before="in the report", now=""))
        elif name not in old:
            changes.append(Change(kind=Kind.NEW, subject=name, what="", before="", now="in the report"))
        else:
            of_verdicts = list(_verdicts(name, old[name], new[name]))
            same += of_verdicts.count(None)
            changes += [change for change in of_verdicts if change is not None]
            changes += _findings(name, old[name], new[name])
            changes += _recoveries(name, old[name], new[name])
    order = list(Kind)
    return Comparison(
        before=before.began,
        now=now.began,
        versions={name: (old[name].subject.version, new[name].subject.version) for name in old if name in new},
        changes=sorted(changes, key=lambda change: order.index(change.kind)),
        same=same,
    )


def _by_name(result: AuditResult) -> dict[str, SubjectResult]:
    names = [each.subject.name for each in result.subjects]
    return {
        each.subject.name
        if names.count(each.subject.name) == 1
        else f"{each.subject.name} {each.subject.version}": each
        for each in result.subjects
    }


def _verdicts(name: str, before: SubjectResult, now: SubjectResult) -> Iterator[Change | None]:
    old = {verdict.statement: verdict for verdict in before.verdicts}
    new = {verdict.statement: verdict for verdict in now.verdicts}
    for statement in in_order([*old, *new]):
        yield _verdict(name, statement, old.get(statement), new.get(statement))


def _verdict(name: str, statement: str, before: Verdict | None, now: Verdict | None) -> Change | None:
    old, new = (None if verdict is None else style_of(verdict) for verdict in (before, now))
    kind = _kind(old, new)
    if kind is None:
        return None
    words = [style.words if style else "" for style in (old, new)]
    why = now.why if now else ""
    return Change(kind=kind, subject=name, what=statement, before=words[0], now=words[1], why=why)


def _kind(old: VerdictStyle | None, new: VerdictStyle | None) -> Kind | None:
    if old is None:
        return Kind.NEW
    if new is None:
        return Kind.GONE
    before, now = _RANKS.get(old), _RANKS.get(new)
    if before == now:
        return None
    if now is None:
        return Kind.UNDECIDED
    if before is None:
        return Kind.BETTER if new is PASS else Kind.WORSE
    return Kind.BETTER if now > before else Kind.WORSE


def _findings(name: str, before: SubjectResult, now: SubjectResult) -> Iterator[Change]:
    old = {f"{finding_words(finding).lower()} in {finding.probe}": finding for finding in before.findings}
    new = {f"{finding_words(finding).lower()} in {finding.probe}": finding for finding in now.findings}
    for what, finding in new.items():
        if what not in old:
            yield Change(kind=Kind.WORSE, subject=name, what=what, before="not found", now="found", why=finding.why)
    for what, finding in old.items():
        if what not in new and finding.probe in now.probes:
            yield Change(kind=Kind.BETTER, subject=name, what=what, before="found", now="not found")


def _recoveries(name: str, before: SubjectResult, now: SubjectResult) -> Iterator[Change]:
    for probe, old_ms in before.recovery_ms.items():
        new_ms = now.recovery_ms.get(probe)
        if new_ms is None or abs(new_ms - old_ms) < _LEAST_MS or max(new_ms, old_ms) < _LONGER * min(new_ms, old_ms):
            continue
        kind = Kind.WORSE if new_ms > old_ms else Kind.BETTER
        words = milliseconds(old_ms), milliseconds(new_ms)
        yield Change(kind=kind, subject=name, what=f"recovery from {probe}", before=words[0], now=words[1])
