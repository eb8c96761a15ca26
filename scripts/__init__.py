"""Helpers of the Makefile. They run before anything is installed, so they use the standard library alone."""
