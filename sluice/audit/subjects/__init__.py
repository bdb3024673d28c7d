"""The clients that can be audited: ready subjects by name, and any command.

    SUBJECTS["aiokafka"].version()
    subject_of("my-app --bootstrap {bootstrap}")

A ready subject has a driver, which runs a workload and reports the client's callbacks. A command is only observed at
the broker.
"""

from collections.abc import Mapping

from sluice.audit.judge.model.observation import Role
from sluice.audit.probes.probe import Setting
from sluice.audit.subjects.clients.aiokafka import CLIENT as AIOKAFKA
from sluice.audit.subjects.clients.confluent_kafka import CLIENT as CONFLUENT_KAFKA
from sluice.audit.subjects.clients.confluent_kafka import IDEMPOTENT as CONFLUENT_KAFKA_IDEMPOTENT
from sluice.audit.subjects.clients.franz_go import CLIENT as FRANZ_GO
from sluice.audit.subjects.clients.java import CLIENT as JAVA
from sluice.audit.subjects.clients.java import CLIENT_4 as JAVA_4
from sluice.audit.subjects.clients.java import kafka_defaults
from sluice.audit.subjects.clients.kafka_python import CLIENT as KAFKA_PYTHON
from sluice.audit.subjects.clients.kafkajs import CLIENT as KAFKAJS
from sluice.audit.subjects.clients.sarama import CLIENT as SARAMA
from sluice.audit.subjects.clients.sluice import CLIENT as SLUICE
from sluice.errors import ConfigError, SubjectError

from .command import ADDRESSES, BOOTSTRAP, CommandSubject
from .driven import DrivenSubject, VirtualSubject
from .java import KAFKA_4, JavaSubject
from .program import ProgramSubject
from .subject import Job, Running, Subject

__all__ = [
    "SUBJECTS",
    "VIRTUAL",
    "CommandSubject",
    "Job",
    "ProgramSubject",
    "Running",
    "Subject",
    "SubjectError",
    "VirtualSubject",
    "kafka_defaults",
    "subject_of",
]

_READY: tuple[Subject, ...] = (
    DrivenSubject(AIOKAFKA),
    DrivenSubject(KAFKA_PYTHON),
    DrivenSubject(CONFLUENT_KAFKA),
    DrivenSubject(CONFLUENT_KAFKA_IDEMPOTENT),
    JavaSubject(JAVA),
    JavaSubject(JAVA_4, KAFKA_4),
    ProgramSubject(FRANZ_GO),
    ProgramSubject(SARAMA),
    ProgramSubject(KAFKAJS),
    DrivenSubject(SLUICE),
)
VIRTUAL: dict[str, VirtualSubject] = {
    subject.name: subject for subject in (VirtualSubject(AIOKAFKA), VirtualSubject(SLUICE))
}
SUBJECTS: dict[str, Subject] = {**{subject.name: subject for subject in _READY}, **VIRTUAL}


def subject_of(word: str, role: Role | None = None, settings: Mapping[str, Setting] | None = None) -> Subject:
    """Return a ready subject by name, or a command, with its role (None detects it) and known settings.

    Raises:
        ConfigError: `word` is neither a name in SUBJECTS nor a command that contains {bootstrap} or {bootstrap_port}.
    """
    if word in SUBJECTS:
        return SUBJECTS[word]
    if not any(address in word for address in ADDRESSES):
        names = ", ".join(SUBJECTS)
        raise ConfigError(
            f"subject {word}: unknown subject; expected one of {names}, or a command that contains {BOOTSTRAP}, "
            f"such as 'my-app --bootstrap {BOOTSTRAP}'"
        )
    return CommandSubject(word, role, settings)
