"""Mobility simulation and capacity planning. Empty so far: the models come first, then a thin shell for Spark."""
