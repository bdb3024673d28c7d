"""Compilers from message classes to encoders and decoders."""
