"""TLS contexts and the mapping of certificates to principals."""
