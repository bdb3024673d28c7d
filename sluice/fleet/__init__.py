"""Fleets: what thousands to millions of clients do when a broker fails.

    from sluice.fleet.models.mix import parse_mix
    from sluice.fleet.run import run_fleet

simulation/ runs models of clients as arrays. exact/ runs real clients and the real broker, and checks the models.
"""
