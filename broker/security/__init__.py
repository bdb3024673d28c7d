"""Who a client is, and what it may do. Loaded only where a listener or an authorizer asks for it."""
