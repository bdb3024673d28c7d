"""The audit: run a real client against a failing broker, and compare its behaviour with the KIPs.

A probe (probes/) injects one fault while a subject (subjects/) uses the broker. The journal and the driver's events
form an Observation, the input of the judge (judge/).
"""
