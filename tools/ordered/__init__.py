"""Bugs of applications in real time: ordered scripts for clients that are no asyncio programs."""
