"""What the judge works on: attempts, observations, statements and verdicts, as data."""
