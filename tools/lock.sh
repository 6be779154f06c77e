#!/bin/sh
# Write requirements.lock from pyproject.toml: exact pins for every platform and Python >= 3.12, no host or path named.
set -eu
cd "$(dirname "$0")/.."
python=${1:-.venv/bin/python}
"$python" -m uv pip compile --quiet --universal --python-version 3.12 --upgrade --extra dev --extra docs \
    --no-header --no-emit-index-url --no-emit-find-links --no-annotate pyproject.toml --output-file requirements.lock
