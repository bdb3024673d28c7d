"""Rules about metadata and unknown topics."""
