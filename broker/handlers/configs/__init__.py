"""Handlers of the config, client quota and telemetry APIs."""
