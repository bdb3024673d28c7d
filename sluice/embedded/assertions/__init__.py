"""What a test asserts about a journal, and what it waits for."""
