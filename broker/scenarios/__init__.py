"""Scenarios: timed sequences of faults and changes, from TOML, YAML or JSON."""
