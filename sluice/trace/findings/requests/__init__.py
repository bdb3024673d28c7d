"""Findings about requests: errors, retries, throttles, missing responses."""
