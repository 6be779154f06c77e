"""Which column plays which role: the stated precedence, and errors that name both columns."""

import pytest

from scalingkit.core import roles
from scalingkit.core.errors import RunsError


def found(headers, **options):
    return {role: column.header for role, column in roles.resolve(headers.split("|"), **options).items()}


@pytest.mark.parametrize(
    ("headers", "want"),
    [
        ("Model Size (B)|FLOPs (1E21)| Tokens (T)", {"N": "Model Size (B)", "C": "FLOPs (1E21)", "D": " Tokens (T)"}),
        ("Model Size|Training FLOP|loss", {"N": "Model Size", "C": "Training FLOP", "loss": "loss"}),
        ("num_params|train_tokens|val_loss", {"N": "num_params", "D": "train_tokens", "loss": "val_loss"}),
        ("nParams|numTokens|valLoss|runName", {"N": "nParams", "D": "numTokens", "loss": "valLoss", "run": "runName"}),
        ("N|D|C|loss|seed", {"N": "N", "D": "D", "C": "C", "loss": "loss", "seed": "seed"}),
        ("config.n_params|summary.tokens|summary.eval/loss|_step|Name",
         {"N": "config.n_params", "D": "summary.tokens", "loss": "summary.eval/loss", "step": "_step", "run": "Name"}),
        ("config.n_params.value|config.seed.value|loss", {"N": "config.n_params.value", "seed": "config.seed.value", "loss": "loss"}),
        ("parameter_count|throughput/total_tokens|throughput/total_gflops|eval/paloma/macro_loss",
         {"N": "parameter_count", "D": "throughput/total_tokens", "C": "throughput/total_gflops", "loss": "eval/paloma/macro_loss"}),
        ("#Params (B)|Model Family|train_corpus", {"N": "#Params (B)", "family": "Model Family", "corpus": "train_corpus"}),
        ("n|d|final_loss", {"N": "n", "D": "d", "loss": "final_loss"}),
        ("params|embedding_params|tokens|loss", {"N": "params", "D": "tokens", "loss": "loss"}),
        ("width|depth|tokens|loss", {"d_model": "width", "n_layers": "depth", "D": "tokens", "loss": "loss"}),
    ],
)  # fmt: skip
def test_roles_by_name(headers, want):
    assert found(headers) == want


def test_units_of_headers():
    columns = roles.resolve(["params in billions", "tokens_B", "train_flops (PF-days)", "loss (bits)"])
    assert [columns[k].factor for k in "NDC"] == [1e9, 1e9, 1e15 * 86400]
    assert columns["loss"].factor == pytest.approx(0.6931471805599453)
    assert roles.resolve(["loss (bits per byte)", "N"])["loss"].unit == "bits per byte"


def test_precedence():
    assert found("N|params|loss")["N"] == "N"  # the field's own name before an alias
    assert found("loss|val_loss|train_loss")["loss"] == "loss"
    assert found("val_loss|train_loss")["loss"] == "val_loss"  # held out before training
    assert roles.resolve(["val_loss", "train_loss"])["loss"].others == ("train_loss",)  # and said
    assert found("N|params|loss", columns={"N": "params"})["N"] == "params"  # what is given, first
    assert found("params|params_no_embed|loss", params_kind="non-embedding")["N"] == "params_no_embed"
    assert found("params|params_no_embed|loss", params_kind="total")["N"] == "params"


@pytest.mark.parametrize(
    ("headers", "names"),
    [
        ("params|n_params|loss", ("params", "n_params")), ("total_params|non_embedding_params", ("params_kind", "total")),
        ("N|D|val_loss|eval/loss", ("val_loss", "eval/loss")), ("N|loss_a|loss_b", ("loss_a", "loss_b")),
    ],
)  # fmt: skip
def test_ambiguity_names_both_and_the_way_out(headers, names):
    with pytest.raises(RunsError, match="Choose: columns=") as e:
        found(headers)
    assert all(n in str(e.value) for n in names)


def test_a_role_can_be_switched_off():
    assert "N" not in found("params|n_params|loss", columns={"N": None})


def test_unknown_columns_get_a_suggestion():
    with pytest.raises(RunsError, match="Did you mean 'Model Size'"):
        found("Model Size|loss", columns={"N": "Modle Size"})
    with pytest.raises(RunsError, match="given for both N and D"):
        found("a|loss", columns={"N": "a", "D": "a"})
    with pytest.raises(RunsError, match="neither a role"):
        found("N|loss", given_units={"tokns": "B"})


def test_a_header_may_be_given_without_its_unit():
    column = roles.resolve(["Model Size (B)", "loss"], {"N": "model size"})["N"]
    assert (column.header, column.factor) == ("Model Size (B)", 1e9)


def test_unknown_and_contradicting_units_are_refused():
    with pytest.raises(RunsError, match=r"'GB'.*units=\{'N'"):
        found("Model Size (GB)|loss")
    with pytest.raises(RunsError, match="two units"):
        found("params_B (M)|loss")
    with pytest.raises(RunsError, match="not a unit of N"):
        found("N|loss", given_units={"N": "parsecs"})
    assert roles.resolve(["Model Size (GB)"], given_units={"N": 0.5e9})["N"].factor == 0.5e9  # the user's word counts


def test_kinds_are_read_from_headers():
    assert roles.resolve(["N (non-embedding)"])["N"].kind == "non-embedding"
    assert roles.resolve(["active params"])["N"].kind == "active"
    assert roles.resolve(["C_6ND"])["C"].kind == "6ND"
    assert roles.resolve(["N"])["N"].kind == ""


def test_a_bare_tflops_is_a_rate():
    assert "C" not in found("tflops|N|loss")
    assert found("total_tflops|N|loss")["C"] == "total_tflops"


def test_a_column_of_words_is_not_a_size():
    words = {"param_count"}
    got = found("param_count|n|loss", numeric=lambda h, role: h not in words)
    assert got["N"] == "n"


def test_one_input_tables():
    assert found("x|y|seed") == {"x": "x", "y": "y", "seed": "seed"}
    assert found("step|N|acc", columns={"x": "step", "y": "acc"}) == {"x": "step", "y": "acc"}
