"""What changed in a source between two of its versions."""
