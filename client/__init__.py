"""The asyncio client: retry and reconnect backoff (KIP-580, KIP-144), delivery timeout (KIP-91), throttling (KIP-219).

It behaves as Apache Kafka's clients do, or, with `profile="kip"`, as the text of the KIPs specifies. Applications use
`admin.AdminClient`, `producer.Producer` and `consumer.Consumer`. Below them are `network` (start reading at
`network.network_client`), `metadata`, `backoff` and `config`. Decisions are sans-I/O, with time and randomness as
parameters.
"""
