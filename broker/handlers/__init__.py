"""The request handlers, one file for each Kafka API.

The same file in sluice.protocol.apis describes the API and the changes of each version.
"""
