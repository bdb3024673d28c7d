"""SASL authentication: PLAIN, SCRAM and OAUTHBEARER."""
