"""Wide: keeps the plots of a panel as wide as their cell, from the start and when a sidebar opens.

Plotly's ``responsive`` listens to the window alone, and a plot drawn before its cell has a width stays 700 px wide.
"""

from __future__ import annotations

import anywidget

_ESM = """
const misfit = (plot) => plot._fullLayout && plot.clientWidth > 0 && plot._fullLayout.width !== plot.clientWidth;

export default {
  render({ el }) {
    el.style.display = "none";
    let tries = 0, seen = null;
    const fit = () => {
      const plots = [...(el.parentElement?.querySelectorAll(".js-plotly-plot") ?? [])];
      if (plots.some(misfit)) window.dispatchEvent(new Event("resize"));
    };
    const timer = setInterval(() => {  // the first plot may come seconds after the panel
      fit();
      if (el.parentElement && !seen) {
        seen = new ResizeObserver(fit);
        seen.observe(el.parentElement);
      }
      if (++tries > 60) clearInterval(timer);
    }, 250);
    return () => { clearInterval(timer); seen?.disconnect(); };
  },
};
"""


class Wide(anywidget.AnyWidget):
    """Invisible; a child of the panel whose plots it fits."""

    _esm = _ESM
