"""The clients that can be audited: ready subjects by name, and any command.

    SUBJECTS["aiokafka"].version()
    subject_of("my-app --bootstrap {bootstrap}")

A ready subject has a driver, which runs a workload and reports the client's callbacks. A command is only observed at
the broker.
"""

from collections.abc import Mapping

from sluice.audit.judge.model.observation import Role
from sluice.audit.probes.probe import Setting
from sluice.audit.subjects.clients import aiokafka, confluent_kafka, franz_go, kafka_python, kafkajs, sarama, sluice
from sluice.audit.subjects.clients import java as java_clients
from sluice.errors import ConfigError

from .command import ADDRESSES, BOOTSTRAP, CommandSubject
from .driven import DrivenSubject, VirtualSubject
from .java import KAFKA_4, JavaSubject
from .program import ProgramSubject
from .subject import Subject

_READY: tuple[Subject, ...] = (
    DrivenSubject(aiokafka.CLIENT),
    DrivenSubject(kafka_python.CLIENT),
    DrivenSubject(confluent_kafka.CLIENT),
    DrivenSubject(confluent_kafka.IDEMPOTENT),
    JavaSubject(java_clients.CLIENT),
    JavaSubject(java_clients.CLIENT_4, KAFKA_4),
    ProgramSubject(franz_go.CLIENT),
    ProgramSubject(sarama.CLIENT),
    ProgramSubject(kafkajs.CLIENT),
    DrivenSubject(sluice.CLIENT),
)
VIRTUAL: dict[str, VirtualSubject] = {
    subject.name: subject for subject in (VirtualSubject(aiokafka.CLIENT), VirtualSubject(sluice.CLIENT))
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
