"""The clients of the lint matrix: each driver does what a job states, with the client's own settings."""
