"""One refresh: planned, run, read back."""
