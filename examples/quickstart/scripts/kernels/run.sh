#!/usr/bin/env bash
# A script with several results writes them to the CSV that its card declares in "multiple_results".
set -euo pipefail
python3 kernels.py --output "../${MAD_OUTPUT_CSV:-kernels.csv}" "$@"
