"""What a reader of a trace should look at, computed from events; one module per finding."""
