"""Application of fault rules to single requests."""
