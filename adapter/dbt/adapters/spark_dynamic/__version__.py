"""The one place where the version is written."""

version = "0.1.0"
