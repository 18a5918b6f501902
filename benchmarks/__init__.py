"""Dynamic tables against rebuilt tables and hand-written incremental models, on TPC-H."""
