"""The `fencepost` command: `main` finds the command's module, each module knows one command."""
