"""The JSON Schema of report.json, generated from its types: docs/audit.schema.json."""

from sluice.audit.judge.model.verdict import AuditResult
from sluice.text.json_schema import schema_of, text_of


def schema_text() -> str:
    return text_of(schema_of(AuditResult, "Result of an audit of Kafka clients by sluice"))
