"""Which device is chosen, and what is said of it, on machines that are made up."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from scalingkit.infer import device
from scalingkit.infer.likelihoods import DataError


def machine(monkeypatch, *platforms):
    have = {p: [SimpleNamespace(platform=p, id=i) for i in range(2)] for p in platforms}
    monkeypatch.setattr(device, "_seen", lambda platform: have.get(platform, []))


@pytest.mark.parametrize(
    "have, wanted, fits, platform, said",
    [
        (("cpu", "gpu"), "auto", 1, "cpu", "one small fit"),
        (("cpu", "gpu"), "auto", 1000, "gpu", "a batch of 1,000 fits"),
        (("cpu",), "auto", 1000, "cpu", "no GPU here"),
        (("cpu", "gpu"), "cpu", 1000, "cpu", "asked for"),
        (("cpu", "gpu"), "gpu", 1, "gpu", "asked for"),
        (("cpu", "tpu"), "auto", 1000, "cpu", "no GPU here"),
        (("cpu", "tpu"), "tpu", 1, "tpu", "asked for"),
    ],
)
def test_small_fits_stay_on_the_cpu_and_batches_go_to_a_gpu(monkeypatch, have, wanted, fits, platform, said):
    machine(monkeypatch, *have)
    chosen, reason = device.choose(wanted, fits)
    assert (chosen.platform, chosen.id) == (platform, 0) and said in reason


def test_what_is_not_there_is_refused(monkeypatch):
    machine(monkeypatch, "cpu")
    with pytest.raises(DataError, match="no device 'gpu' here; JAX sees cpu"):
        device.choose("gpu", 5)
    with pytest.raises(DataError, match="'cuda' is not known"):
        device.choose("cuda")


def test_on_this_machine_a_fit_runs_on_its_cpu():
    assert device.choose("auto")[0].platform == "cpu"
