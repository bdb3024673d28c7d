"""The journal: one event for each request, response, connection and fault."""
