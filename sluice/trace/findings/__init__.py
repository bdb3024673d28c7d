"""What a reader of a trace should look at, computed from events; a module per subject."""
