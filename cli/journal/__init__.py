"""`sluice journal`: tail and export."""
