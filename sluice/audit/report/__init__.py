"""Reports of an audit: JSON with its schema, JUnit XML for CI, HTML for people, and comparisons."""
