"""Fleets: what thousands to millions of clients do when a broker fails.

    from sluice.fleet.models.mix import parse_mix
    from sluice.fleet.run import run_fleet

The vectorised simulation (simulation/) runs models of clients; the exact one (exact.py) runs real clients and the real
broker in virtual time, and checks the models.
"""
