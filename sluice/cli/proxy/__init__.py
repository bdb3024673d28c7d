"""`sluice proxy`."""
