"""The steps of a scenario, one file per kind of target."""
