"""Configs of topics, brokers, groups and client metrics that can change at run time."""
