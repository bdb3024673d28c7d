"""Share groups on the leaders of partitions: ShareFetch and ShareAcknowledge."""
