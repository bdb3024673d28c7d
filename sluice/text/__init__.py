"""Text that people write and read: printable names, suggestions, typed decoding, JSON Schemas."""
