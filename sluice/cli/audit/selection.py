"""Selection of clients and probes by command-line arguments."""

from collections.abc import Iterable, Mapping, Sequence

import click

from sluice.audit.judge.model.observation import Role
from sluice.audit.judge.model.statements import RECOVERY, STATEMENTS
from sluice.audit.probes import PROBES
from sluice.audit.probes.probe import Probe, Setting
from sluice.audit.subjects import SUBJECTS, subject_of
from sluice.audit.subjects.clients.java import kafka_defaults
from sluice.audit.subjects.command import CommandSubject
from sluice.audit.subjects.subject import Subject
from sluice.errors import ConfigError, SluiceError
from sluice.text.error_text import did_you_mean, expected, unknown

_VIRTUAL = "-virtual"
_STRATEGIES = ("none", "rebootstrap")


def chosen_subjects(
    words: Sequence[str], role: str | None, settings: Sequence[str], like: str | None = None, *, virtual: bool
) -> list[Subject]:
    """Return these clients; default: all available ones, printed to stderr. Raises SluiceError."""
    configured = chosen_settings(settings, like)
    if not words:
        found = [each for each in SUBJECTS.values() if each.virtual is virtual and each.missing() is None]
        if not found:
            raise SluiceError("no supported client is installed; pass --subject with a client or a command")
        click.echo(f"clients: {', '.join(each.name for each in found)}", err=True)
        return found
    as_role = None if role is None else Role(role)
    chosen = [_subject(word, as_role, configured, virtual=virtual) for word in dict.fromkeys(words)]
    option = f"--setting {settings[0]}" if settings else f"--like {like}"
    if configured and not any(isinstance(subject, CommandSubject) for subject in chosen):
        raise ConfigError(f"{option}: applies only to commands; no --subject is a command")
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
        raise ConfigError(f"--subject {word}: not supported in virtual time; expected one of {', '.join(able)}")
    return SUBJECTS[f"{word}{_VIRTUAL}"]


def chosen_settings(words: Sequence[str], like: str | None = None) -> dict[str, Setting]:
    return (kafka_defaults() if like else {}) | dict(map(_setting, words))


def _setting(word: str) -> tuple[str, Setting]:
    name, _, value = word.partition("=")
    known = sorted({setting for statement in STATEMENTS.values() for setting in statement.settings})
    if name not in known:
        raise ConfigError(f"--setting {name}: {unknown('setting', name, known)}")
    if name == RECOVERY and value in _STRATEGIES:
        return name, value
    try:
        return name, float(value)
    except ValueError:
        raise ConfigError(f"--setting {name}: {expected(f'a number, such as {name}=100', value)}") from None


def chosen_probes(words: Sequence[str]) -> list[Probe]:
    """Return these probes in the catalogue's order; default: all. Raises ConfigError."""
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
        raise ConfigError(f"--probe {word}: a broker cannot observe it{why}")
    if not found:
        kips = sorted({statement.partition("/")[0] for statement in STATEMENTS})
        hint = did_you_mean(word, [*PROBES, *STATEMENTS, *kips], ". `sluice audit list probes` lists them")
        raise ConfigError(f"--probe {word}: unknown probe, KIP or statement{hint}")
    return found


def _is_of(statement: str, wanted: str) -> bool:
    return statement == wanted or statement.partition("/")[0] == wanted
