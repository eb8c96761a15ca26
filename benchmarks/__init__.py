"""Measurements: one file a question, each checks its answer before it times it. See README.md."""
