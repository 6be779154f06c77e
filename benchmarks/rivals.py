"""Ray against spread on every table and law, at full length: python benchmarks/rivals.py --store out/rivals.zarr

Writes data/rivals/wins.csv (counts of wins and median scores by unit, law, objective, arithmetic and region: derived
numbers only, no run of any table), data/rivals/rates.csv (win rates with intervals that treat each table as one
cluster) and data/rivals/manifest.json. Stopped, it goes on where it was.
"""

from __future__ import annotations

import argparse
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import xarray as xr

from scalingkit import catalog
from scalingkit.design import rivals_study

HOME = Path(__file__).resolve().parent.parent / "data" / "rivals"


def wins(found: xr.Dataset) -> str:
    """One row for every unit, law, objective, arithmetic and region that gave a score."""
    counts = xr.Dataset({"wins": found["win"].sum("pair"), "pairs": found["win"].count("pair")})
    middle = found["rmse"].median("pair")
    for d in ("ray", "spread"):
        counts[f"rmse_{d}"] = middle.sel(design=d, drop=True)
    counts["band_nats"] = found["width"].median("pair")
    frame = counts.to_dataframe().reset_index()
    frame = frame[frame["pairs"] > 0].sort_values(["unit", "law", "objective", "arithmetic", "region"])
    order = [
        "unit",
        "law",
        "objective",
        "arithmetic",
        "region",
        "wins",
        "pairs",
        "rmse_ray",
        "rmse_spread",
        "band_nats",
    ]
    return frame[order].to_csv(index=False, float_format="%.4g")


def rates(found: xr.Dataset) -> str:
    made = rivals_study.rates(found)
    frame = (
        made["rate"].to_dataset("bound").assign(share=made["share"], tables=made["tables"]).to_dataframe().reset_index()
    )
    frame = frame[frame["tables"] > 0]
    order = ["kind", "law", "objective", "arithmetic", "region", "share", "estimate", "lower", "upper", "tables"]
    return frame[order].to_csv(index=False, float_format="%.4f")


def manifest(found: xr.Dataset, settings: dict[str, object]) -> str:
    shown = {t: catalog.show(t) for t in rivals_study.SPLIT}
    return json.dumps(
        {
            "what": "win rates of spread over ray designs of equal cost; derived numbers only",
            "made_by": "benchmarks/rivals.py",
            "settings": settings,
            "tables": {t: {"licence": s["licence"], "citation": s["citation"], "commit": s["commit"]} for t, s in shown.items()},
            "not_applicable": _reasons(found),
            "versions": {k: version(k) for k in ("scalingkit", "jax", "numpy", "scipy", "xarray")},
        },
        indent=1,
    )  # fmt: skip


def _reasons(found: xr.Dataset) -> dict[str, str]:
    said = found["reason"].stack(task=("unit", "law"))
    return {f"{t.item()[0]} / {t.item()[1]}": str(v) for t, v in zip(said["task"], said.values, strict=True) if str(v)}


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text if text.endswith("\n") else text + "\n", encoding="utf-8")
    part.replace(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, default=Path("out/rivals.zarr"))
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--laws", nargs="*", default=list(rivals_study.LAWS))
    parser.add_argument("--out", type=Path, default=HOME)
    given = parser.parse_args()
    settings = dict(pairs=given.pairs, starts=given.starts, laws=given.laws, seed=0)
    found = rivals_study.study(given.store, progress=True, **settings)
    write(given.out / "wins.csv", wins(found))
    write(given.out / "rates.csv", rates(found))
    write(given.out / "manifest.json", manifest(found, settings))
    print(rates(found))
    print({k: int(v) for k, v in zip(*np.unique(found["state"].values.astype(str), return_counts=True), strict=True)})


if __name__ == "__main__":
    main()
