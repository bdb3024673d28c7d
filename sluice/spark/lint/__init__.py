"""The lint job: the rules of `sluice lint` over the journals of a fleet."""
