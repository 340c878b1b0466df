"""Scripts and tool definitions that travel into the container."""
