"""How the fault rules that match one request are applied to it."""
