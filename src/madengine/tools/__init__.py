"""Older import paths that model packages rely on."""
