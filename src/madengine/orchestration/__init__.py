"""The stories: build, run, collect. Short, top to bottom, no details."""
