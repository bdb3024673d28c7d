"""Long runs of mixed clients and faults at a low rate, which must not leave anything behind (campaign `soak`)."""
