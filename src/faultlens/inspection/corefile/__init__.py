"""Core files."""
