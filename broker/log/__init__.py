"""The log of one partition: segments, producer state, leader epochs, retention."""
