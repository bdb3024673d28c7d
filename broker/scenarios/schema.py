"""The JSON Schema of a scenario file, made from the types: docs/scenario.schema.json. Editors check files against it.

It accepts all that can be run, and some that cannot: what contradicts itself over time only sluice finds.
"""

from sluice.text.json_schema import Schema, schema_of, table, text_of

from .model import Scenario
from .timeline import ACTIONS


def schema() -> Schema:
    """The schema, with what the docstrings tell of fields as their descriptions."""
    made = schema_of(Scenario, "A scenario of sluice")
    table(table(made["$defs"])["Step"])["oneOf"] = [{"required": [kind]} for kind in ACTIONS]
    return made


def schema_text() -> str:
    """The same as the text of a file."""
    return text_of(schema())
