"""The request handlers, one file for each Kafka API.

The same file in sluice.protocol.apis lists the changes of each version.
"""
