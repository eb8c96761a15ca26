"""Handing notifications to subscribers: by cursor poll, server-sent events and WebSocket."""
