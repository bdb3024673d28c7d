"""From frame to handler to response: routing, decoding, encoding, and forwarding to the controller."""
