"""Rules about failed requests and their retries."""
