"""The JSON Schema of scenario files, generated from the types for editors: docs/scenario.schema.json.

It accepts every valid scenario, and some invalid ones: only sluice finds contradictions between steps.
"""

from sluice.text.json_text import Schema, schema_of, table, text_of

from .model import Scenario
from .timeline import ACTIONS


def schema() -> Schema:
    made = schema_of(Scenario, "A scenario of sluice")
    table(table(made["$defs"])["Step"])["oneOf"] = [{"required": [kind]} for kind in ACTIONS]
    return made


def schema_text() -> str:
    return text_of(schema())
