"""A rule: a function of the facts of a client, a group or a topic, with the reason and the remedy for its findings."""

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from sluice.lint.facts.measures.examples import Example

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
    """A rule.

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
