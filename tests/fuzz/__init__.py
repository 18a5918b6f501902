"""Random queries over random changes: the old result plus the delta must be the new result."""
