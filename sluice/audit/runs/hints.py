"""Why a client does not connect or work: the end of its standard error, and what to check."""

import re

from sluice.audit.probes.probe import TOPIC
from sluice.audit.subjects.subject import Running

# The first pattern that the problem or the output contains.
_HINTS = (
    (r"NOT_LEADER_OR_FOLLOWER", "Send the requests for a partition to its leader, which Metadata names"),
    (r"refused|unreachable|getaddrinfo|no such host|name or service", "It connects elsewhere; pass it {bootstrap}"),
    (r"sasl|ssl|tls|certificate", "The brokers of the audit use PLAINTEXT; configure the client so"),
    (r"unknown.topic|topic.*(not|does not) exist|not.*topic", f"Use the topic {{topic}}, which is {TOPIC}"),
    (r"module|import|class.?not.?found|no such file", "The command lacks a file or library"),
    (r"usage|unrecognized|unknown (option|flag|argument)", "Check the arguments of the command"),
)
_NOT_CONNECTED = (
    "Check that it uses {bootstrap} (HOST:PORT, separated by commas), or {bootstrap_host} and {bootstrap_port}"
)
_NOT_WORKING = "Check that it uses the topic {topic}, and runs until it is ended"


def not_connected(running: Running, within: str) -> str:
    return f"did not connect to the brokers at {{bootstrap}} {within}{_reason(running, _NOT_CONNECTED)}"


def did_nothing(running: Running, what: str) -> str:
    return f"{what}{_reason(running, _NOT_WORKING, what)}"


def _reason(running: Running, default: str, what: str = "") -> str:
    output = running.last_output()
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, f"{what} {output}", re.IGNORECASE)), default)
    shown = f"; its standard error ends with: {output}" if output else "; it wrote nothing to its standard error"
    return f"{shown}. {hint}"
