"""Events, selectors and edges: what matches, and which changes are worth telling. Pure."""
