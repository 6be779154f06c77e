#!/bin/sh
# Make the project's own environment: tools/setup.sh [VENV]
#
# Finds a Python >= 3.12, makes VENV with it (or keeps the one that is there), installs the pins of requirements.lock
# with uv (with pip where uv cannot be had) and this project editable, and writes VENV/.ready. Safe to repeat.
set -eu
cd "$(dirname "$0")/.."
venv=${1:-.venv}

new_enough() { "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; }

find_python() {
    # python3 first: under pyenv it is what .python-version selects
    for name in ${PYTHON:-} python3 python3.13 python3.12 python3.14 python; do
        if command -v "$name" >/dev/null 2>&1 && new_enough "$name"; then echo "$name"; return; fi
    done
    return 1
}

if ! new_enough "$venv/bin/python"; then
    if ! python=$(find_python); then
        found=$(python3 --version 2>&1 || true)
        echo "scalingkit needs Python 3.12 or newer with its venv module, and found only: ${found:-no python3}." \
            "Install one, or make the conda environment with 'conda env create -f environment.yml' (see its first lines)." >&2
        exit 2
    fi
    echo "Making $venv with $("$python" --version)"
    "$python" -m venv --clear "$venv"
fi

python=$venv/bin/python
if ! "$python" -m uv --version >/dev/null 2>&1; then
    "$python" -m pip install --quiet --quiet uv || echo "uv is not to be had; going on with pip, which is slower" >&2
fi
if "$python" -m uv --version >/dev/null 2>&1; then
    install() { "$python" -m uv pip install --quiet --python "$python" "$@"; }
else
    install() { "$python" -m pip install --quiet --quiet "$@"; }
fi

echo "Installing the pinned packages into $venv (a few minutes the first time)"
if ! install -r requirements.lock || ! install --no-deps --no-build-isolation -e .; then
    echo "The packages could not be installed: see the message above. Without a network, use an environment that" \
        "already has them (environment.yml lists them): activate it and say 'make tour VENV=\"\$CONDA_PREFIX\" READY='." >&2
    exit 2
fi
date >"$venv/.ready"
