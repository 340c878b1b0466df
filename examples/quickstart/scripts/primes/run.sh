#!/usr/bin/env bash
# One metric line is all that a script owes: "performance: <number> <metric>".
set -euo pipefail
echo "model ${MAD_MODEL_NAME} on ${MAD_GPU_VENDOR}"
python3 sieve.py "$@"
