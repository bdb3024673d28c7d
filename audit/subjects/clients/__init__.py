"""What is known of each client library: one file each, from its own documentation."""
