"""`sluice pipeline throttle`: throttle times per client, from the journal."""
