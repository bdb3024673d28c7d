"""The observations of an audit as files, one per client; they can be judged again with settings found out later."""

import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from sluice.audit.judge import findings, judge
from sluice.audit.judge.consistency import consistent
from sluice.audit.judge.measured import measured_backoffs
from sluice.audit.judge.model.observation import Observation, SubjectInfo
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.judge.model.verdict import AuditResult, FindingKind, SubjectResult
from sluice.audit.probes.probe import Setting
from sluice.errors import SluiceError

_LEVEL = 3  # events repeat most of their fields: higher levels save little


def observation_file(report: Path, number: int) -> Path:
    """Return the file of the report's client with this number, from 0."""
    return report / "observations" / f"{number}.msgpack.gz"


def write_observations(file: Path, observations: Sequence[Observation]) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(msgspec.msgpack.encode(observations), _LEVEL, mtime=0))
    except OSError as error:
        raise SluiceError(f"{file}: cannot write the observations: {error.strerror}") from None


def read_observations(file: Path) -> list[Observation]:
    """Raise SluiceError if the file is missing or not of this version."""
    try:
        return msgspec.msgpack.decode(gzip.decompress(file.read_bytes()), type=list[Observation])
    except OSError as error:
        raise SluiceError(f"{file}: cannot read the observations: {error.strerror or error}") from None
    except (msgspec.MsgspecError, EOFError) as error:
        raise SluiceError(f"{file}: expected the observations of an audit of this version: {error}") from None


def judge_again(result: AuditResult, report: Path, settings: Mapping[str, Setting]) -> AuditResult:
    """Return the result of a report's folder with new verdicts, given settings of its commands. Raises SluiceError."""
    subjects = [
        _judged(subject, read_observations(observation_file(report, number)), settings)
        for number, subject in enumerate(result.subjects)
    ]
    return msgspec.structs.replace(result, subjects=subjects)


def _judged(
    before: SubjectResult, observations: Sequence[Observation], settings: Mapping[str, Setting]
) -> SubjectResult:
    runs = sorted(
        (msgspec.structs.replace(run, subject=_with(run.subject, settings)) for run in observations),
        key=lambda run: (run.probe, run.repetition),
    )
    probes = {run.probe for run in runs}
    return msgspec.structs.replace(
        before,
        subject=_with(before.subject, settings),
        verdicts=consistent(
            [
                judge(statement.id, [run for run in runs if run.probe in statement.probes])
                for statement in STATEMENTS.values()
                if not probes.isdisjoint(statement.probes)
            ]
        ),
        findings=[
            *(each for probe in before.probes for each in findings([run for run in runs if run.probe == probe])),
            *(each for each in before.findings if each.kind is FindingKind.LOST),
        ],
        backoffs=measured_backoffs(runs),
    )


def _with(subject: SubjectInfo, settings: Mapping[str, Setting]) -> SubjectInfo:
    if not subject.is_command:
        return subject
    return msgspec.structs.replace(subject, settings={**subject.settings, **settings})
