"""Runs on a Slurm cluster: one job per model and image."""
