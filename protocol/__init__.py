if __name__ != "sluice.protocol":
    raise ImportError("import sluice.protocol, not protocol: a second name would make a second copy of every class")
