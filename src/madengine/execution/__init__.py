"""Containers: building images and running one model in one of them."""
