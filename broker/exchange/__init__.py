"""The life of a request: routing, decoding, handling, charging, encoding, sending; forwarding to the controller."""
