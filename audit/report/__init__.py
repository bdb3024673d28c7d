"""What an audit found, told: as JSON with its schema, for CI (JUnit), for people (one HTML page), and compared.

Everything here is made of an AuditResult alone, so that a report can be told again, by whoever has its report.json.
"""
