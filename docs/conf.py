"""Sphinx configuration. Builds offline: no inventories, fonts or scripts are fetched, at build time or by the reader."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import pages

import scalingkit

project = "scalingkit"
author = "The scalingkit authors"
release = version = scalingkit.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
html_theme = "furo"
html_title = "scalingkit"
html_show_copyright = False
html_static_path = ["_static"]
html_css_files = ["wrap.css"]
highlight_language = "text"

# notebooks are shown as they were executed and committed
nb_execution_mode = "off"
nb_ipywidgets_js: dict[str, dict[str, str]] = {}
nb_mime_priority_overrides = [("html", "application/vnd.jupyter.widget-view+json", 100)]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints = "none"
autodoc_preserve_defaults = True


def setup(app) -> None:
    app.connect("config-inited", lambda _app, _config: pages.write(Path(__file__).parent))
    app.connect("autodoc-process-docstring", pages.as_written)
