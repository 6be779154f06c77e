"""Compiled programs are kept where allowed, and only there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import scalingkit, jax, jax.numpy as jnp
from scalingkit.infer import compiled
jnp.ones(3).sum()  # something was compiled before
compiled.SECONDS = 0.0
place = compiled.keep()
jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x))(jnp.ones(7)).block_until_ready()
print(place, len(list(place.iterdir())) if place else 0)
"""


def run(tmp_path, **env):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_COMP", "JAX_PERS", "JAX_ENABLE_COMP"))}
    env = clean | {"XDG_CACHE_HOME": str(tmp_path), "SCALINGKIT_COMPILED": ""} | env
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    place, count = done.stdout.split()
    return place, int(count)


@pytest.mark.skipif(
    sys.platform != "linux", reason="the cache folder is moved by XDG_CACHE_HOME, which Linux alone has"
)
def test_kept_in_the_users_cache(tmp_path):
    place, count = run(tmp_path)
    assert place.startswith(str(tmp_path)) and count > 0


@pytest.mark.parametrize("off", [{"SCALINGKIT_COMPILED": "off"}, {"JAX_ENABLE_COMPILATION_CACHE": "0"}], ids=str)
def test_switched_off(tmp_path, off):
    assert run(tmp_path, **off) == ("None", 0)
    assert not list(tmp_path.rglob("*-cache"))


def test_the_users_own_cache_is_left_as_it_is(tmp_path):
    own = tmp_path / "own"
    assert run(tmp_path, JAX_COMPILATION_CACHE_DIR=str(own)) == ("None", 0)
