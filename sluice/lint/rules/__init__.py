"""The rules: one module per rule, with its `RULE`, found by `sluice/lint/registry.py`."""
