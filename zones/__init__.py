"""Zone Definition Engine: names, shapes, validation and geometry. Pure: no I/O."""
