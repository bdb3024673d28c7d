"""The JSON Schema of report.json, made from the types: docs/audit.schema.json."""

from sluice.audit.judge.model.verdict import AuditResult
from sluice.text.json_schema import schema_of, text_of


def schema_text() -> str:
    """The schema as the text of a file."""
    return text_of(schema_of(AuditResult, "What an audit of Kafka clients by sluice found"))
