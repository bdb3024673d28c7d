"""The reference asyncio client: KIP-580 (retry backoff), KIP-144 (reconnect backoff), KIP-91 (delivery timeout) and
KIP-219 (throttling), as in Apache Kafka's own clients, or, with `profile="kip"`, as the texts specify.

Applications use `admin.AdminClient`, `producer.Producer` and `consumer.Consumer`. Below them are `network`
(connections and requests; start reading at `network.network_client`), `metadata`, `backoff` and `config`. Decisions
are sans-I/O, with time and randomness as parameters; sockets and waiting are in `network.asyncio_network` and in the
modules that await it.
"""
