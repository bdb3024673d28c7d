"""A recommendation as a shell script that runs Kafka's `kafka-configs.sh`.

Arguments are quoted for the shell. In comments, names are JSON in ASCII, so that a line break in a name cannot start a
command.
"""

import json
from collections.abc import Iterable
from shlex import quote

from sluice.spark.charges.charges import By

from .recommendation import KEYS, Need, Recommendation

SCRIPT = "set-quotas.sh"

_HEAD = """\
#!/bin/sh
# Set the recommended quotas, in bytes per second on each broker. Other quotas stay as they are.
# Usage: {script} BOOTSTRAP-SERVER [OPTION of kafka-configs.sh]...
set -eu
: "${{1:?the bootstrap server, such as localhost:9092}}"
bootstrap=$1
shift
# Java decodes arguments by the locale; with the wrong one, names that are not ASCII would change.
export LC_ALL="${{LC_ALL:-C.UTF-8}}"
configs=${{KAFKA_CONFIGS:-kafka-configs.sh}}
"""
_EACH = """\
# {comment}
"$configs" --bootstrap-server "$bootstrap" "$@" --alter --add-config {key}={quota} \\
    {entity}
"""

_DEFAULTS: dict[By, str] = {
    "client-id": "--entity-type clients --entity-default",
    "user": "--entity-type users --entity-default",
    "user+client-id": "--entity-type users --entity-default --entity-type clients --entity-default",
}


def script(recommendations: Iterable[Recommendation], by: By, name: str) -> str:
    """Return the script, whose file name is `name`, for quotas of the level `by`."""
    parts = [_HEAD.format(script=name)]
    for found in recommendations:
        key = KEYS[found.kind]
        if found.default is not None:
            comment = f"{found.kind}: default, {found.default_headroom:.0%} above the largest need of its clients"
            parts.append(_EACH.format(comment=comment, key=key, quota=found.default, entity=_DEFAULTS[by]))
        for need in found.overrides:
            shown = ", ".join(json.dumps(each) for each in (need.user, need.client_id) if each)
            comment = f"{found.kind}: {shown}, {need.demand.rate:.0f} bytes/s on average"
            quota = need.recommended(found.headroom)
            if "\0" in need.user + need.client_id:
                parts.append(f"# {comment}\n# not set: an argument of a command cannot contain NUL\n")
            else:
                parts.append(_EACH.format(comment=comment, key=key, quota=quota, entity=_entity(need)))
    return "\n".join(parts)


def _entity(need: Need) -> str:
    named = {"users": need.user, "clients": need.client_id}
    # As `--entity-name=NAME`, a name that begins with a dash is not read as an option.
    return " ".join(f"--entity-type {type_} {quote(f'--entity-name={name}')}" for type_, name in named.items() if name)
