"""A rule: a function of the facts of a client, a group or a topic, with the reason and the remedy for its findings."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Generic, TypeVar

import msgspec

from sluice.lint.facts.measures.examples import Example
from sluice.lint.facts.membership import Notes
from sluice.lint.facts.subjects import ClientFacts, GroupFacts
from sluice.lint.facts.topics import TopicFacts

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


class Citation(msgspec.Struct, frozen=True):
    """Kafka's own words.

    where: the document, such as "Producer Configs, acks" or "KIP-98"
    words: the sentence, literally
    url: its address
    """

    where: str
    words: str
    url: str


_CONFIGS = re.compile("(Producer|Consumer|Broker|Topic) Configs, (.+)")


def cited(where: str, words: str, url: str = "") -> Citation:
    """Return a citation; configs, KafkaConsumer and KafkaProducer need no URL."""
    if configs := _CONFIGS.fullmatch(where):
        url = f"https://kafka.apache.org/documentation/#{configs[1].lower()}configs_{configs[2]}"
    elif not url:
        name = where.partition(",")[0]
        folder = name.removeprefix("Kafka").lower()
        url = f"https://kafka.apache.org/41/javadoc/org/apache/kafka/clients/{folder}/{name}.html"
    return Citation(where, words, url)


class Remedy(msgspec.Struct, frozen=True, kw_only=True):
    """What to change, by property names of each client library; "" if the library has no such setting."""

    java: str = ""
    librdkafka: str = ""
    aiokafka: str = ""
    franz_go: str = ""
    kafkajs: str = ""


def properties(words: str, **others: str) -> Remedy:
    """Return a remedy with properties of Kafka, which librdkafka has too, and aiokafka with `_` in the names."""
    return Remedy(**{"java": words, "librdkafka": words, "aiokafka": words.replace(".", "_")} | others)


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


_SCOPES: dict[object, Scope] = {ClientFacts: Scope.CLIENT, GroupFacts: Scope.GROUP, TopicFacts: Scope.TOPIC}


def rule(
    severity: Severity, *, title: str, why: str, citation: Citation, remedy: Remedy, silent: str
) -> Callable[[Callable[[F], Iterable[Evidence | Unknown]]], Rule[F]]:
    """Make a rule of its check: the function's name is the id, and the type of its argument gives the scope."""

    def made(check: Callable[[F], Iterable[Evidence | Unknown]]) -> Rule[F]:
        return Rule(
            id=check.__name__.replace("_", "-"),
            scope=_SCOPES[check.__annotations__["facts"]],
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
