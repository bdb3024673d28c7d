"""Settings of clients, as their requests state or show them, by the names of the Java client's properties."""

from enum import StrEnum

import msgspec

from .clients import ClientKey
from .facts.client_facts import ClientFacts
from .facts.group_facts import GroupFacts


class Certainty(StrEnum):
    """How sure a setting is.

    stated: requests have the value
    measured: it follows from the times or sizes of many requests, within their spread
    bound: it is at least, or at most, the value
    """

    STATED = "stated"
    MEASURED = "measured"
    BOUND = "bound"


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One setting of one client.

    name: property of the Java client, such as linger.ms
    value: the value with its unit; several values with their shares if requests differ
    certainty: how sure it is
    basis: what shows it, such as "1,204 Produce requests"
    """

    name: str
    value: str
    certainty: Certainty
    basis: str


def settings_of_client(facts: ClientFacts) -> list[Setting]:
    return []


def settings_of_group(facts: GroupFacts) -> dict[ClientKey, list[Setting]]:
    """Return the settings of the group's members, which only the group's requests show."""
    return {}
