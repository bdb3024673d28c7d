"""The data of the judge: attempts, observations, statements and verdicts."""
