"""Fault injection: rules, the engine that evaluates them, and their actions."""
