"""The HTML reports of results and sweeps."""
