"""An event loop in virtual time and a network in memory."""
