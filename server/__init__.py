"""The server: everything with I/O around the pure packages."""
