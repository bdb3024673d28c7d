"""The instructions of a start, of requests and of a scrape, and the recorded counts."""
