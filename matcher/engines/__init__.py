"""Fast versions of what `matcher` decides, compiled by numba. Never imported on a device."""
