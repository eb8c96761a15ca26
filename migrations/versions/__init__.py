"""One module per step, numbered; each stays as it was released."""
