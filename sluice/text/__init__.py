"""Text for people: printable names, suggestions, typed decoding, JSON Schemas."""
