"""Import paths that model packages rely on."""
