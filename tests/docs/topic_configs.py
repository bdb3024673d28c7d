"""The table of docs/topic-configs.md, from the table in the code: `python -m tests.docs.topic_configs` writes it."""

import re
from pathlib import Path

from sluice.config.property_table import TOPIC_DEFAULT_OF, TOPIC_PROPERTIES
from sluice.config.value_types import LONG_MAX

PAGE = Path(__file__).parents[2] / "docs" / "topic-configs.md"
_TABLE = re.compile(r"(<!-- configs: [^\n]*-->\n).*?(<!-- end of configs -->)", re.DOTALL)


def table() -> str:
    """Those that have an effect first."""
    rows = sorted(TOPIC_PROPERTIES.values(), key=lambda row: (row.has_no_effect, row.name))
    lines = [
        "| config | accepted | default | broker's property | what it does here |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        broker_property = TOPIC_DEFAULT_OF.get(row.name)
        cells = [
            f"`{row.name}`",
            row.kind.accepts,
            "" if row.default is None else f"`{row.default}`" if row.default else "empty",
            "" if broker_property is None else f"`{broker_property}`",
            row.doc,
        ]
        lines.append("| " + " | ".join(cells).replace(str(LONG_MAX), "2^63-1") + " |")
    return "\n".join([*lines, ""])


def with_table(page: str) -> str:
    return _TABLE.sub(lambda match: f"{match[1]}{table()}{match[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
