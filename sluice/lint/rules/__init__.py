"""The rules: functions with the decorator `rule`, found by `sluice/lint/registry.py`."""
