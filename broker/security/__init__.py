"""Authentication and authorization. Loaded only if a listener or an authorizer requires it."""
