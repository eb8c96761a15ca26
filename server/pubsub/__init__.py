"""Spatial Pub/Sub Manager: zones, subscriptions and events in memory, and what they give."""
