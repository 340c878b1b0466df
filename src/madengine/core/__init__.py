"""The basement: errors, processes, files, secrets. Knows nothing of models."""
