"""Reports of lint: JSON, SARIF, JUnit XML and HTML."""
