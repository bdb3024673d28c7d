if __name__ != "sluice.broker":
    raise ImportError("import sluice.broker, not broker: a second name would make a second copy of every class")
