"""The lint matrix: real clients with planted misconfigurations, and with their defaults, judged by `sluice lint`."""
