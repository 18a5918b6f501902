"""Statements that write: storage, views, settings of the one commit."""
