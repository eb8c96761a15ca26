"""Mobility simulation: pure models of movement, and the demo that moves real agents with them."""
