"""Subjects by name, or as commands; what is none is told in one line."""

import pytest

from sluice.audit.judge.model.observation import Role
from sluice.audit.subjects import SUBJECTS, CommandSubject, subject_of
from sluice.audit.subjects.clients.aiokafka import CLIENT
from sluice.audit.subjects.driven import DrivenSubject
from sluice.errors import ConfigError


def test_ready_ones_are_found_by_name() -> None:
    assert subject_of("aiokafka") is SUBJECTS["aiokafka"]
    assert {name for name, subject in SUBJECTS.items() if subject.virtual} == {"aiokafka-virtual", "sluice-virtual"}


def test_a_command_is_called_by_its_program() -> None:
    subject = subject_of("/opt/bin/my-app --bootstrap {bootstrap} -v", Role.CONSUMER)
    assert isinstance(subject, CommandSubject)
    assert (subject.name, subject.roles, subject.version()) == ("my-app", frozenset({Role.CONSUMER}), "")
    assert subject_of("my-app {bootstrap}").roles is None, "it has to be seen"


@pytest.mark.parametrize(
    ("word", "told"),
    [
        pytest.param("librdkafka", "unknown subject", id="a name that nobody has"),
        pytest.param("my-app --port 1", "or a command that contains {bootstrap}", id="a command without an address"),
        pytest.param("my-app '{bootstrap}", "No closing quotation", id="a command that no shell can read"),
    ],
)
def test_what_is_no_subject_is_told(word: str, told: str) -> None:
    with pytest.raises(ConfigError, match=r"^subject ") as raised:
        subject_of(word)
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_library_that_is_not_installed_is_told_with_what_to_do() -> None:
    subject = DrivenSubject(CLIENT._replace(distribution="no-such-library"))
    assert subject.missing() == "aiokafka: no-such-library is not installed: pip install no-such-library"
    assert SUBJECTS["aiokafka"].missing() is None
