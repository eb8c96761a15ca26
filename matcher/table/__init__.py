"""The forwarding table: many predicates matched at once by bitsets of violated filters. Never imported on a device."""
