"""Client and connection quotas: limits, recorded use and throttle times, independent of messages and sockets."""

if __name__ != "sluice.quotas":
    raise ImportError("import sluice.quotas, not quotas: a second name would make a second copy of every class")
