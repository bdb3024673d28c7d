"""A recommendation as a shell script that sets it with Kafka's `kafka-configs.sh`.

Client ids and users are whatever clients chose. They reach the command as they are, whatever a shell would make of
them; and where the script speaks of them it is in ASCII on one line, so that none can look like a command of its own.
"""

import json
from collections.abc import Iterable
from shlex import quote

from sluice.pipeline.charges.charges import By

from .recommendation import KEYS, Need, Recommendation

SCRIPT = "set-quotas.sh"

_HEAD = """\
#!/bin/sh
# Sets the quotas that a plan recommends: {script} BOOTSTRAP-SERVER [OPTION OF kafka-configs.sh...]
# Quotas are bytes per second on each broker.
set -eu
: "${{1:?the bootstrap server, such as localhost:9092}}"
bootstrap=$1
shift
# Java reads names by this; without it those that are not ASCII would be others.
export LC_ALL="${{LC_ALL:-C.UTF-8}}"
configs=${{KAFKA_CONFIGS:-kafka-configs.sh}}
"""
_EACH = """\
# {what}
"$configs" --bootstrap-server "$bootstrap" "$@" --alter --add-config {key}={quota} \\
    {entity}
"""


_DEFAULTS: dict[By, str] = {
    "client-id": "--entity-type clients --entity-default",
    "user": "--entity-type users --entity-default",
    "user+client-id": "--entity-type users --entity-default --entity-type clients --entity-default",
}


def script(recommendations: Iterable[Recommendation], by: By, name: str) -> str:
    """The script, which is called `name`; `by` is whose use is counted together."""
    parts = [_HEAD.format(script=name)]
    for found in recommendations:
        key = KEYS[found.kind]
        parts.append(_EACH.format(what=f"{found.kind}: everybody", key=key, quota=found.default, entity=_DEFAULTS[by]))
        for need in found.overrides:
            shown = ", ".join(json.dumps(each) for each in (need.user, need.client_id) if each)
            what = f"{found.kind}: {shown}, {need.offered_rate:.0f} bytes/s on average"
            if "\0" in need.user + need.client_id:
                parts.append(f"# {what}\n# cannot be set: no command can be given a name with a NUL\n")
            else:
                parts.append(_EACH.format(what=what, key=key, quota=need.quota, entity=_entity(need)))
    return "\n".join(parts)


def _entity(need: Need) -> str:
    named = {"users": need.user, "clients": need.client_id}
    # The name in one word with its option: so one that begins with a dash is no option.
    return " ".join(f"--entity-type {type_} {quote(f'--entity-name={name}')}" for type_, name in named.items() if name)
