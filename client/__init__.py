"""The reference asyncio client: KIP-580 (retry backoff), KIP-144 (reconnect backoff), KIP-91 (delivery timeout) and
KIP-219 (throttling), as Apache Kafka's own clients do them, or, with `profile="kip"`, as the texts say.

What decides is sans-I/O, with time and chance as parameters; `network` is the one module that knows sockets.
"""
