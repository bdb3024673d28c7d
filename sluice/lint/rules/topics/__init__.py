"""Rules about topics: how their producers and consumers fit together."""
