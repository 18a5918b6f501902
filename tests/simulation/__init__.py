"""The schedule of the engine against a simulated clock and warehouse."""
