"""The command line, wired: which verb is called what. Each verb is one call into the package (see ``verbs``).

``--json`` prints the contract of answers.py on standard output. Exit status: 0 done, 1 a claim or check failed, 2 bad
input (one line that says what, where and how to mend it).
"""

from __future__ import annotations

import typer

from scalingkit.verbs import board, design, fit, house, identify, posterior, systems, tables


def _group(text: str) -> typer.Typer:
    return typer.Typer(
        help=text, no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False
    )


app = _group("Bayesian research toolkit for neural scaling laws.")
data_app = _group("Public run tables: list, fetch, show.")
runs_app = _group("Run tables of your own: check.")
app.add_typer(data_app, name="data")
design_app = _group("Designs of runs: is it enough, and which run next.")
app.add_typer(runs_app, name="runs")
app.add_typer(design_app, name="design")

app.command()(systems.table)
app.command()(systems.show)
data_app.command("list")(tables.data_list)
data_app.command("show")(tables.data_show)
data_app.command("fetch")(tables.data_fetch)
runs_app.command("check")(tables.runs_check)
app.command()(fit.fit)
app.command()(posterior.predict)
app.command()(posterior.check)
app.command()(identify.identify)
design_app.command("check")(design.design_check)
design_app.command("suggest")(design.design_suggest)
design_app.command("board")(board.design_board)
app.command()(house.papers)
app.command()(house.verify)
app.command()(house.doctor)
app.command()(house.tour)


def main() -> None:
    """Entry point of the ``scalingkit`` command."""
    app()


if __name__ == "__main__":
    main()
