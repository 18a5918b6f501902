"""Versions, pins, cuts, records: what a table holds and since when."""
