"""Where fixes come from: replayed traces, callbacks, gpsd. A source is an async iterator of events without oid."""
