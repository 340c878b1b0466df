"""How ranks are started: pure functions from a topology to an environment and a command prefix."""
