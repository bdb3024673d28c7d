"""The group coordinator and the transaction coordinator."""
