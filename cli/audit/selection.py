"""Which clients and probes a person means."""

from collections.abc import Iterable, Mapping, Sequence

import click

from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.statements import STATEMENTS
from sluice.audit.probes import PROBES, Probe, Setting
from sluice.audit.subjects import SUBJECTS, CommandSubject, Subject, subject_of
from sluice.errors import ConfigError, SluiceError
from sluice.text.did_you_mean import meant

_VIRTUAL = "-virtual"


def chosen_subjects(words: Sequence[str], role: str | None, settings: Sequence[str], *, virtual: bool) -> list[Subject]:
    """These clients; of none, all that can be run here, told on stderr. Raises SluiceError."""
    configured = dict(map(_setting, settings))
    if not words:
        found = [each for each in SUBJECTS.values() if each.virtual is virtual and each.missing() is None]
        if not found:
            raise SluiceError("no client is installed that could be audited; --subject names one, or a command")
        click.echo(f"clients: {', '.join(each.name for each in found)}", err=True)
        return found
    as_role = None if role is None else Role(role)
    chosen = [_subject(word, as_role, configured, virtual=virtual) for word in dict.fromkeys(words)]
    if settings and not any(isinstance(subject, CommandSubject) for subject in chosen):
        raise ConfigError(f"--setting {settings[0]}: it tells of a command, and no --subject is one")
    for subject in chosen:
        missing = subject.missing()
        if missing is not None:
            raise SluiceError(missing)
    return chosen


def _subject(word: str, role: Role | None, settings: Mapping[str, Setting], *, virtual: bool) -> Subject:
    if not virtual or word.endswith(_VIRTUAL):
        return subject_of(word, role, settings)
    if f"{word}{_VIRTUAL}" not in SUBJECTS:
        able = [name.removesuffix(_VIRTUAL) for name, each in SUBJECTS.items() if each.virtual]
        raise ConfigError(f"--subject {word}: cannot be run in virtual time, which {', '.join(able)} can")
    return SUBJECTS[f"{word}{_VIRTUAL}"]


def _setting(word: str) -> tuple[str, Setting]:
    name, _, value = word.partition("=")
    known = sorted({setting for statement in STATEMENTS.values() for setting in statement.settings})
    if name not in known:
        raise ConfigError(
            f"--setting {word}: nothing is judged by that{meant(name, known)} what counts is {', '.join(known)}"
        )
    try:
        return name, float(value)
    except ValueError:
        raise ConfigError(f"--setting {word}: not a number, such as {name}=100") from None


def chosen_probes(words: Sequence[str]) -> list[Probe]:
    """These probes, in the order of the catalogue, each once; of no word, all. Raises ConfigError."""
    names = {name for word in words for name in _names(word)} if words else set(PROBES)
    return [probe for name, probe in PROBES.items() if name in names]


def _names(word: str) -> Iterable[str]:
    if word in PROBES:
        return [word]
    wanted = word.upper()
    found = [name for name, probe in PROBES.items() if any(_is_of(each, wanted) for each in probe.statements)]
    known = [each for each in STATEMENTS.values() if wanted in (each.id, each.id.partition("/")[0])]
    if not found and known:
        why = next((f": {each.unobservable}" for each in known if each.unobservable), "")
        raise ConfigError(f"--probe {word}: nothing of it can be seen by a broker{why}")
    if not found:
        kips = sorted({statement.partition("/")[0] for statement in STATEMENTS})
        hint = meant(word, [*PROBES, *STATEMENTS, *kips])
        raise ConfigError(
            f"--probe {word}: no probe, and no KIP or statement that one is for{hint} "
            "`sluice audit list probes` names them"
        )
    return found


def _is_of(statement: str, wanted: str) -> bool:
    return statement == wanted or statement.partition("/")[0] == wanted
