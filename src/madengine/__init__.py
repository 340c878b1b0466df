"""madengine: runs AI model benchmarks and says honestly what happened."""

__version__ = "0.1.0"
