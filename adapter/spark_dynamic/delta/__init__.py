"""The delta of a plan from the deltas of its sources: one file per operator, its law on top."""
