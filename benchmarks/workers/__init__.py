"""Processes of their own beside the measured server, driven by lines on stdin and stdout."""
