"""A rule: a function of the facts of a client, a group or a topic, with the reason and the remedy for its findings."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from sluice.lint.facts.measures.examples import Example
from sluice.lint.facts.membership import Notes

F = TypeVar("F")  # ClientFacts, GroupFacts or TopicFacts, by the scope


class Scope(StrEnum):
    CLIENT = "client"
    GROUP = "group"
    TOPIC = "topic"


class Severity(StrEnum):
    """How bad a finding is, worst first.

    error: records may be lost, reordered, duplicated or not read
    warning: the client, or others, will have trouble under load or failures
    info: it costs more than necessary
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def and_worse(self) -> "list[Severity]":
        severities = list(Severity)
        return severities[: severities.index(self) + 1]


class Citation(msgspec.Struct, frozen=True, kw_only=True):
    """Kafka's own words.

    where: the document, such as "Producer Configs, acks" or "KIP-98"
    url: its address
    words: the sentence, literally
    """

    where: str
    url: str
    words: str


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """What to change, by property names of each client library; "" if the library has no such setting."""

    java: str
    librdkafka: str
    aiokafka: str
    franz_go: str
    kafkajs: str


class Evidence(msgspec.Struct, frozen=True):
    """What was observed.

    text: one sentence with numbers
    examples: up to five events that show it
    """

    text: str
    examples: Sequence[Example] = ()


class Unknown(msgspec.Struct, frozen=True):
    """The facts do not decide.

    record: what to record so that they do, as an imperative sentence
    """

    record: str


class Rule(msgspec.Struct, Generic[F], frozen=True, kw_only=True):
    """A rule. The decorator `rule` makes one.

    id: lower-case words with hyphens, which name the problem
    title: one line for lists
    why: what goes wrong, in one or two sentences
    silent: when the rule reports nothing although the problem may exist
    check: yields an Evidence per problem; nothing if there is none; an Unknown if the facts do not decide
    """

    id: str
    scope: Scope
    severity: Severity
    title: str
    why: str
    citation: Citation
    remedy: Remedy
    silent: str
    check: Callable[[F], Iterable[Evidence | Unknown]]


def rule(
    scope: Scope, severity: Severity, *, title: str, why: str, citation: Citation, remedy: Remedy, silent: str
) -> Callable[[Callable[[F], Iterable[Evidence | Unknown]]], Rule[F]]:
    """Make a rule of its check, with the name of the function as id."""

    def made(check: Callable[[F], Iterable[Evidence | Unknown]]) -> Rule[F]:
        return Rule(
            id=check.__name__.replace("_", "-"),
            scope=scope,
            severity=severity,
            title=title,
            why=why,
            citation=citation,
            remedy=remedy,
            silent=silent,
            check=check,
        )

    return made


def noted(notes: Notes) -> Iterator[Evidence]:
    """Yield the occurrences that were noted, if there are any."""
    if notes.count:
        yield Evidence(notes.in_words, notes.examples)
