"""The properties of each client library, from its documentation."""
