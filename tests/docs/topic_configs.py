"""Write the table of docs/topic-configs.md from the code: `python -m tests.docs.topic_configs`."""

import re
from pathlib import Path

from sluice.config.property_table import TOPIC_DEFAULT_OF, TOPIC_PROPERTIES
from sluice.config.value_types import LONG_MAX
from tests.docs.tables import code, table

PAGE = Path(__file__).parents[2] / "docs" / "topic-configs.md"
_TABLE = re.compile(r"(<!-- configs: [^\n]*-->\n).*?(<!-- end of configs -->)", re.DOTALL)


def configs() -> str:
    """Return the table of the configs with an effect, and the names of the others."""
    rows = [
        [code(one.name), one.kind.accepts, code(one.default or ""), code(TOPIC_DEFAULT_OF.get(one.name)), one.doc]
        for one in sorted(TOPIC_PROPERTIES.values(), key=lambda one: one.name)
        if not one.has_no_effect
    ]
    without_effect = ", ".join(code(one.name) for one in TOPIC_PROPERTIES.values() if one.has_no_effect)
    described = table(("config", "type", "default", "broker property", "description"), rows)
    return f"\n{described}\nWithout effect: {without_effect}.\n\n".replace(str(LONG_MAX), "2^63-1")


def with_table(page: str) -> str:
    """Return the page with the current table."""
    return _TABLE.sub(lambda match: f"{match[1]}{configs()}{match[2]}", page)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))
