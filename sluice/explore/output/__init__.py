"""What an exploration prints and writes: its report, a test that repeats a failure, and what a trace shows."""
