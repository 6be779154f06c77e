"""Which device is chosen, and what is said of it, on machines that are made up."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from scalingkit import pointfit
from scalingkit.infer import device
from scalingkit.infer.likelihoods import DataError


def machine(monkeypatch, *platforms):
    have = {p: [SimpleNamespace(platform=p, id=i) for i in range(2)] for p in platforms}
    monkeypatch.setattr(device, "_seen", lambda platform: have.get(platform, []))


@pytest.mark.parametrize(
    "have, wanted, fits, platform, said",
    [
        (("cpu", "gpu"), "auto", 1, "cpu", "one small fit"),
        (("cpu", "gpu"), "auto", 63, "cpu", "one small fit"),
        (("cpu", "gpu"), "auto", 64, "gpu", "a batch of 64 fits"),
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


def test_what_a_function_does_besides_happens_on_its_device_too(monkeypatch):
    told = []
    monkeypatch.setattr(device, "_seen", lambda platform: [f"{platform} 0"])
    monkeypatch.setattr(device.jax, "default_device", lambda d: told.append(d) or nullcontext())

    @device.placed("bootstrap")
    def job(law, *, bootstrap=0, device="auto"):
        return law, bootstrap, device

    assert job("a") == ("a", 0, "auto") and told.pop() == "cpu 0"
    assert job("a", bootstrap=500) == ("a", 500, "auto") and told.pop() == "gpu 0"
    assert job("a", bootstrap=500, device="cpu") == ("a", 500, "cpu") and told.pop() == "cpu 0"


def test_every_result_says_what_ran_and_why(table):
    small = pointfit("chinchilla", table(30), method="lsq-log", starts=4)
    many = pointfit("chinchilla", table(30), method="lsq-log", starts=4, bootstrap=64)
    assert small.attrs["device"] == many.attrs["device"] == "cpu:0"
    assert "one small fit" in small.attrs["device_reason"]
    assert "64 bootstraps, and JAX sees no GPU" in many.attrs["device_reason"]
    with pytest.raises(DataError, match="'gpu'"):
        pointfit("chinchilla", table(30), device="gpu")


def test_on_this_machine_a_fit_runs_on_its_cpu():
    assert device.choose("auto")[0].platform == "cpu"
