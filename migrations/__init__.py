"""The steps from one set of tables to the next, run by `fencepost db upgrade` (`server.store.migrate`)."""
