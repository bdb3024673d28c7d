"""The clients that can be looked at: ready ones by their names, and any command.

    SUBJECTS["aiokafka"].version()
    subject_of("my-app --bootstrap {bootstrap}")

A ready one comes with a driver, which has it work and tells what its callbacks say; a command is only watched. Those
that are asyncio and nothing else can be looked at in virtual time as well.
"""

from collections.abc import Mapping

from sluice.audit.judge.model.observation import Role
from sluice.audit.probes import Setting
from sluice.audit.subjects.clients.aiokafka import CLIENT as AIOKAFKA
from sluice.audit.subjects.clients.confluent_kafka import CLIENT as CONFLUENT_KAFKA
from sluice.audit.subjects.clients.kafka_python import CLIENT as KAFKA_PYTHON
from sluice.audit.subjects.clients.sluice import CLIENT as SLUICE
from sluice.errors import ConfigError

from .command import BOOTSTRAP, CommandSubject
from .driven import DrivenSubject, VirtualSubject
from .java import JavaSubject
from .subject import Job, Running, Subject, SubjectError

__all__ = [
    "SUBJECTS",
    "VIRTUAL",
    "CommandSubject",
    "Job",
    "Running",
    "Subject",
    "SubjectError",
    "Tell",
    "VirtualSubject",
    "subject_of",
]

_READY: tuple[Subject, ...] = (
    DrivenSubject(AIOKAFKA),
    DrivenSubject(KAFKA_PYTHON),
    DrivenSubject(CONFLUENT_KAFKA),
    JavaSubject(),
    DrivenSubject(SLUICE),
)
VIRTUAL: dict[str, VirtualSubject] = {
    subject.name: subject for subject in (VirtualSubject(AIOKAFKA), VirtualSubject(SLUICE))
}
SUBJECTS: dict[str, Subject] = {**{subject.name: subject for subject in _READY}, **VIRTUAL}


def subject_of(word: str, role: Role | None = None, settings: Mapping[str, Setting] | None = None) -> Subject:
    """A ready subject by its name, or a command. `role`: what a command is; None: it is seen. `settings`: what it is
    configured to, by Kafka's names.

    Raises ConfigError for what is neither.
    """
    if word in SUBJECTS:
        return SUBJECTS[word]
    if BOOTSTRAP not in word:
        names = ", ".join(SUBJECTS)
        raise ConfigError(
            f"subject {word}: there is none of that name; those there are: {names}; "
            f"or a command with {BOOTSTRAP} in it, such as 'my-app --bootstrap {BOOTSTRAP}'"
        )
    return CommandSubject(word, role, settings)
