"""Reports of an audit: JSON with its schema, JUnit XML for CI, an HTML page and Markdown for people, and comparisons.

Everything is derived from an AuditResult, so report.json suffices to write a report again.
"""
