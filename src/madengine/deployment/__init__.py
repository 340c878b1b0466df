"""Where a run happens: this machine, Slurm, Kubernetes."""
