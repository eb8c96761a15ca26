"""The HTTP and WebSocket API."""
