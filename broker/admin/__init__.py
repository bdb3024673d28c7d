"""The admin HTTP port: metrics, health, the JSON API, and its OpenAPI document."""
