"""The asyncio client: retry and reconnect backoff (KIP-580, KIP-144), delivery timeout (KIP-91), throttling (KIP-219).

It behaves as Apache Kafka's clients do, or, with `profile="kip"`, as the text of the KIPs specifies. The
public classes are `admin.AdminClient`, `producer.Producer` and `consumer.Consumer`; below them, start reading at
`network.network_client`. Decisions are sans-I/O: time and randomness are parameters.
"""
