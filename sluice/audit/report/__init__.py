"""Reports of an audit: JSON with its schema, JUnit XML for CI, HTML and Markdown for people, and comparisons."""
