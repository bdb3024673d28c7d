"""`sluice demo`: throttle real clients and check the results."""
