"""Privacy Manager: who may know where an object is. Pure."""
