"""Mobile Location Agent: evaluates subscriptions where the position is known."""
