"""Everything that waits: deadlines and keys. Knows no message, no socket and no event loop; time comes from a Clock."""
