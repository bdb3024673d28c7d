"""Delayed operations, by deadline and key; independent of messages, sockets and the event loop."""

if __name__ != "sluice.purgatory":
    raise ImportError("import sluice.purgatory, not purgatory: a second name would make a second copy of every class")
