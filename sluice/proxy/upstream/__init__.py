"""The brokers behind a proxy: which there are, the connections to them, and what is sent on them."""
