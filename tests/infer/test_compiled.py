"""Compiled programs are kept where allowed, and only there."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

from scalingkit import fit, pointfit, runs, sbc

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


# --------------------------------------------------------------------------- what is compiled, and what not again


@pytest.fixture(scope="module")
def compilations():
    """``count(call)``: how many programs XLA compiles during the call."""
    heard = []
    jax.monitoring.register_event_duration_secs_listener(lambda event, seconds, **_: heard.append(event))

    def count(call):
        heard.clear()
        call()
        return sum(e.endswith("backend_compile_duration") for e in heard)

    return count


def design(n, seed):
    return runs.make(x=np.sort(10 ** np.random.default_rng(seed).uniform(6, 9, n)))


def with_outcome(n, seed):
    made = design(n, seed)
    noise = np.exp(0.02 * np.random.default_rng([seed, 1]).standard_normal(n))
    return made.assign(y=("run", 3 * made["x"].values ** -0.1 * noise))


CALLS = {
    "fit": lambda n, seed: fit("power", with_outcome(n, seed), chains=2, draws=20, tune=20, seed=seed),
    "other target": lambda n, seed: fit(
        "power", with_outcome(n, seed), chains=2, draws=20, tune=20, seed=seed, target_accept=0.8 + 0.1 * (seed == 1)
    ),
    "pointfit": lambda n, seed: pointfit("power", with_outcome(n, seed), bootstrap=20, seed=seed),
    "sbc": lambda n, seed: sbc("power", design(n, seed), 3, draws=20, tune=20, seed=seed),
}


@pytest.mark.parametrize("what", CALLS)
def test_other_numbers_of_the_same_shape_compile_nothing(compilations, what):
    CALLS[what](17, 0)
    assert compilations(lambda: CALLS[what](17, 1)) == 0
    assert compilations(lambda: CALLS[what](17, 2)) == 0


def test_another_shape_is_compiled_once(compilations):
    """Of a posterior every number of runs is a shape; of a point fit only a bucket of them."""
    assert compilations(lambda: CALLS["fit"](13, 0)) > 0
    assert compilations(lambda: CALLS["fit"](13, 1)) == 0
    CALLS["pointfit"](17, 0)  # 17 to 20 runs are one shape
    assert compilations(lambda: CALLS["pointfit"](20, 1)) == 0
    assert compilations(lambda: CALLS["pointfit"](21, 1)) > 0
