"""Typed records at the borders: facts, findings and verdicts, with their schemas."""
