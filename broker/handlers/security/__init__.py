"""Handlers of the SASL, SCRAM and ACL APIs."""
