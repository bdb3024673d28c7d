"""Access control lists and the authorizer."""
