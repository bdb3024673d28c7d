"""The kinds of reasons for which tests are skipped. A test that is skipped for another one fails."""

KINDS = {
    "program": "a program that this machine does not have",
    "build": "a client in another language that was not built",
    "system": "an operating system, or a permission",
    "campaign": "minutes, which a campaign spends",
    "feature": "a feature that the client lacks",
    "kafka-upstream": "a broker of sluice, in place of which --kafka-upstream puts a proxy",
}


def program(name: str, remedy: str) -> str:
    """Return the reason for a missing program."""
    return f"program: {name} is not installed; {remedy}"


JAVA = program("Java 17", "install a JDK of version 17 or later")


def build(client: str, why: str) -> str:
    """Return the reason for a missing build."""
    return f"build: {client}: {why}"


def system(what: str) -> str:
    """Return the reason for a missing property of the system."""
    return f"system: no {what}"


def campaign(name: str) -> str:
    """Return the reason for a test of a campaign."""
    return f"campaign: takes minutes; run tools/campaign run {name}"


def feature(client: str, lacks: str) -> str:
    """Return the reason for a missing feature of a client."""
    return f"feature: {client} {lacks}"


def own_broker(why: str) -> str:
    """Return the reason for a test that needs a broker of sluice, as the pytest plugin writes it."""
    return f"kafka-upstream: {why}"


def has_a_kind(reason: str) -> bool:
    """Return whether a reason is one of these."""
    return reason.partition(": ")[0] in KINDS
