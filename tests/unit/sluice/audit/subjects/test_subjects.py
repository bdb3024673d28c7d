"""Subjects by name or as commands, and errors in one line."""

import re

import pytest

from sluice.audit.judge.model.observation import Role
from sluice.audit.subjects import SUBJECTS, subject_of
from sluice.audit.subjects.clients.aiokafka import CLIENT
from sluice.audit.subjects.command import CommandSubject
from sluice.audit.subjects.driven import DrivenSubject
from sluice.errors import ConfigError


def test_built_in_subjects_are_found_by_name() -> None:
    assert subject_of("aiokafka") is SUBJECTS["aiokafka"]
    assert {name for name, subject in SUBJECTS.items() if subject.virtual} == {"aiokafka-virtual", "sluice-virtual"}


def test_command_is_named_by_its_program() -> None:
    subject = subject_of("/opt/bin/my-app --bootstrap {bootstrap} -v", Role.CONSUMER)
    assert isinstance(subject, CommandSubject)
    assert (subject.name, subject.roles, subject.version()) == ("my-app", frozenset({Role.CONSUMER}), "")
    assert subject_of("my-app {bootstrap}").roles is None, "it has to be seen"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("app {bootstrap} {topic}", ["app", "h:1,h:2", "audit"]),
        ("app --host={bootstrap_host} {bootstrap_port}", ["app", "--host=h", "1"]),
        ("sh -c 'app {bootstrap} | tee {unknown}'", ["sh", "-c", "app h:1,h:2 | tee {unknown}"]),
    ],
    ids=["a list of brokers, and a topic", "one broker", "in a script, beside others"],
)
def test_placeholders_of_a_command_are_replaced(command: str, words: list[str]) -> None:
    subject = subject_of(command)
    assert isinstance(subject, CommandSubject)
    assert subject.words("h:1,h:2") == words


INVALID = {
    "an unknown name": ("librdkafka", "unknown subject"),
    "a command without an address": ("my-app --port 1", "or a command that contains {bootstrap}"),
    "an unparsable command": ("my-app '{bootstrap}", "No closing quotation"),
}


@pytest.mark.parametrize(("word", "message"), INVALID.values(), ids=INVALID)
def test_invalid_subject_is_reported(word: str, message: str) -> None:
    with pytest.raises(ConfigError, match=r"^subject ") as raised:
        subject_of(word)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_missing_library_is_reported_with_a_remedy() -> None:
    subject = DrivenSubject(CLIENT._replace(distribution="no-such-library"))
    assert subject.missing() == "aiokafka: no-such-library is not installed; run pip install no-such-library"
    assert SUBJECTS["aiokafka"].missing() is None


@pytest.mark.parametrize(("name", "tools"), [("franz-go", "go"), ("sarama", "go"), ("kafkajs", "node and npm")])
def test_missing_toolchain_is_reported_with_a_remedy(name: str, tools: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda tool: None)
    why = SUBJECTS[name].missing()
    assert why is not None
    assert why.startswith(f"{name}: {tools} not found to build its driver; install ")


def test_versions_of_programs_are_those_in_their_sources() -> None:
    versions = {name: SUBJECTS[name].version() for name in ("franz-go", "sarama", "kafkajs")}
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in versions.values()), versions
