"""`fencepost demo`: a server, a city and a fleet of real agents, all on this machine."""
