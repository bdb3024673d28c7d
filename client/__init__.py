"""The reference asyncio client: KIP-580 (retry backoff), KIP-144 (reconnect backoff), KIP-91 (delivery timeout) and
KIP-219 (throttling), as Apache Kafka's own clients do them, or, with `profile="kip"`, as the texts say.

`admin.AdminClient` and `producer.Producer` are what applications use. Under them: `network` (connections and requests;
its first lines are where to begin reading), `metadata`, `connection_states`, `backoff`, `config`. What decides is
sans-I/O, with time and chance as parameters; asyncio is in `async_network`, `connection`, and what waits for them.
"""
