"""Notes, names, parameters and precision: small words that everything else leans on."""

import json
import os
import subprocess
import sys

import numpyro.distributions as dist
import pytest
import xarray as xr

from scalingkit.core import names, notes, precision, schema
from scalingkit.core.card import Card
from scalingkit.core.estimator import Estimator
from scalingkit.core.param import Param
from scalingkit.core.policy import Policy


def test_a_note_has_a_code_that_is_spelled_once():
    note = notes.Note("rows-quarantined", "info", "runs", "two of ten.")
    assert str(note) == "info [rows-quarantined] runs: two of ten."
    with pytest.raises(ValueError, match="spell it there first"):
        notes.Note("rows-quarantine", "info", "runs", "")
    assert all(text.strip().endswith((".", "?")) for text in notes.CODES.values())


def test_notes_travel_in_attrs():
    ds = xr.Dataset()
    assert notes.of(ds) == []
    first, second = notes.Note("ridge", "warning", "alpha", "a"), notes.Note("not-converged", "error", "fit", "b")
    notes.add(ds, first)
    notes.add(ds, second)
    assert notes.of(ds) == [first, second]
    assert notes.of(ds.attrs) == [first, second]
    assert json.loads(ds.attrs["notes"])[1]["severity"] == "error"


def test_every_name_has_a_unit_and_a_meaning():
    assert len(set(names.DIMS)) == len(names.DIMS)
    assert all(v.unit and v.meaning for v in names.VARIABLES.values())
    assert names.unit("N") == "parameter"
    assert names.unit("anything else") == "1"
    assert set(schema.POSITIVE) <= set(names.VARIABLES)


def test_a_param_is_one_number():
    assert Param(dist.Normal(0, 1), "a").unit == "1"
    with pytest.raises(ValueError, match="one number"):
        Param(dist.Normal(0.0, 1.0).expand([2]), "b")


def test_estimators_and_policies_are_called_like_functions():
    card = Card("toy", "a toy")
    estimator = Estimator(
        card=card,
        estimate=lambda data, k=1: data * k,
        world="w",
        judge=lambda w, k: (0, 0, 1),
        wrong=lambda w, k: (2, 0, 1),
    )
    assert estimator.name == "toy"
    assert float(estimator(xr.Dataset({"a": 2}), k=3).a) == 6
    policy = Policy(
        card=card, run=lambda key, problem, budget, share=1.0: problem.assign(spent=budget * share), world="w"
    )
    assert float(policy(0, xr.Dataset(), 4.0, share=0.5).spent) == 2.0
    with pytest.raises(TypeError):
        Policy(card, None, "w")  # by name only


def test_a_key_gives_the_same_numbers_every_time():
    import jax

    from scalingkit.core.world import generator

    for key in (3, [3, 4], jax.random.key(3), jax.random.PRNGKey(3)):
        assert generator(key).normal() == generator(key).normal()
    assert generator(3).normal() != generator(4).normal()


def run(code, **env):
    kept = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=kept | env, check=False)


def test_float64_is_decided_by_the_import_and_refusals_say_how_to_mend_it():
    precision.require_x64("this test")
    code = "import scalingkit, jax.numpy as jnp; print(jnp.asarray(7e10).dtype)"
    assert run(code).stdout.strip() == "float64"
    assert run("import jax; " + code).stdout.strip() == "float64"  # also where JAX came first
    code = "import scalingkit; from scalingkit.core.precision import require_x64; require_x64('the check')"
    refused = run(code, JAX_ENABLE_X64="0")
    assert "PrecisionError: the check needs float64" in refused.stderr
    assert run(code).returncode == 0


def test_reading_a_table_does_not_need_jax():
    code = "import sys; from scalingkit.core import runs; runs.read({'N': [1e8], 'loss': [3.0]}); assert 'jax' not in sys.modules"
    assert run(code).stderr == ""
