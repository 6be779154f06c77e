// The N-D plane of a DesignBoard: points to drag, add and remove; the read-outs come from the kernel.
// Protocol: `plan` {seq, points} goes to the kernel, `numbers` {seq, ...} comes back; one message is under way at a time.

const SVG = "http://www.w3.org/2000/svg";
const W = 720, H = 500, M = { l: 70, r: 16, t: 14, b: 54 };

const STYLE = `
.sk-board { --ink: var(--jp-ui-font-color0, #1b1f24); --quiet: var(--jp-ui-font-color2, #5b6470);
  --paper: var(--jp-layout-color1, #fff); --line: var(--jp-border-color2, #d5d9de); --plan: #d9632a; --done: #1f83c4;
  font: 13px/1.45 var(--jp-ui-font-family, system-ui, sans-serif); color: var(--ink); background: var(--paper);
  display: flex; flex-wrap: wrap; gap: 16px; padding: 8px; box-sizing: border-box; max-width: 1120px; }
.sk-board .stage { flex: 1 1 520px; min-width: 320px; max-width: 760px; }
.sk-board svg { width: 100%; height: auto; display: block; touch-action: none; user-select: none; cursor: crosshair; }
.sk-board text { fill: var(--ink); font-size: 13px; } .sk-board .tick { fill: var(--quiet); font-size: 12px; }
.sk-board .guide { stroke: var(--quiet); stroke-opacity: .45; fill: none; } .sk-board .flop { stroke-dasharray: 2 4; }
.sk-board .tpp { stroke-dasharray: 9 5; stroke-opacity: .3; } .sk-board .name { fill: var(--quiet); font-size: 11px; }
.sk-board .grid { stroke: var(--line); } .sk-board .box { fill: var(--paper); stroke: var(--line); }
.sk-board .done { fill: none; stroke: var(--done); stroke-width: 1.8; }
.sk-board .plan { cursor: grab; outline: none; } .sk-board .plan .dot { fill: var(--plan); stroke: var(--paper); stroke-width: 2; }
.sk-board .plan .halo { fill: var(--plan); fill-opacity: 0; } .sk-board .plan:focus .halo, .sk-board .plan.on .halo { fill-opacity: .25; }
.sk-board .plan:active { cursor: grabbing; }
.sk-board .side { flex: 1 1 290px; max-width: 340px; display: flex; flex-direction: column; gap: 10px; }
.sk-board .bar { display: flex; flex-wrap: wrap; gap: 6px; }
.sk-board button { font: inherit; color: var(--ink); background: transparent; border: 1px solid var(--quiet); border-radius: 4px;
  padding: 4px 11px; cursor: pointer; } .sk-board button:hover:enabled { border-color: var(--plan); }
.sk-board button:disabled { opacity: .4; cursor: default; } .sk-board button.main { background: #b94f1c; border-color: #b94f1c; color: #fff; }
.sk-board dl { margin: 0; display: grid; grid-template-columns: auto; gap: 1px; } .sk-board dl dt { color: var(--quiet); font-size: 12px; font-weight: 400; width: auto; float: none; margin: 0; }
.sk-board dl dd { margin: 0 0 7px; width: auto; float: none; font-size: 17px; font-variant-numeric: tabular-nums; } .sk-board dl dd.text { font-size: 13px; }
.sk-board dd small { font-size: 12px; color: var(--quiet); } .sk-board .help, .sk-board .where { color: var(--quiet); font-size: 12px; }
.sk-board .where { min-height: 1.5em; } .sk-board .sk-error { color: var(--jp-error-color1, #c2504d); }
.sk-board.waiting dd { opacity: .55; }`;

function element(kind, attributes = {}, text = null) {
  const e = document.createElementNS(SVG, kind);
  for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
  if (text !== null) e.textContent = text;
  return e;
}

function html(kind, cls, text = "") {
  const e = document.createElement(kind);
  e.className = cls;
  e.textContent = text;
  return e;
}

const up = (n) => String(n).replace("-", "\u2212").split("").map((c) => "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"["0123456789".indexOf(c)] ?? "\u207b").join("");

// 7.3e9 -> "7.3B"; outside everyday sizes a power of ten
export function short(x) {
  for (const [s, u] of [[1e12, "T"], [1e9, "B"], [1e6, "M"], [1e3, "k"]])
    if (x >= s && x < s * 1000) return `${Number((x / s).toPrecision(3))}${u}`;
  return power(x);
}

export function power(x) {
  if (x === null || x === undefined) return "\u221e";
  if (x === 0) return "0";
  if (Math.abs(x) >= 0.01 && Math.abs(x) < 1e4) return String(Number(x.toPrecision(3)));
  const [m, e] = x.toExponential(2).split("e");
  return `${Number(m)}\u00d710${up(Number(e))}`;
}

function render({ model, el }) {
  const root = html("div", "sk-board");
  root.append(Object.assign(document.createElement("style"), { textContent: STYLE }));
  const stage = html("div", "stage"), side = html("div", "side");
  const svg = element("svg", { viewBox: `0 0 ${W} ${H}`, role: "group", "aria-label": "runs on the plane of model size and tokens" });
  stage.append(svg);
  root.append(stage, side);
  el.append(root);

  const frame = () => model.get("frame");
  const x = (N) => M.l + ((Math.log10(N) - frame().N[0]) / (frame().N[1] - frame().N[0])) * (W - M.l - M.r);
  const y = (D) => H - M.b - ((Math.log10(D) - frame().D[0]) / (frame().D[1] - frame().D[0])) * (H - M.t - M.b);
  const at = (event) => {
    const r = svg.getBoundingClientRect();
    const px = ((event.clientX - r.left) / r.width) * W, py = ((event.clientY - r.top) / r.height) * H;
    return inside(frame().N[0] + ((px - M.l) / (W - M.l - M.r)) * (frame().N[1] - frame().N[0]),
      frame().D[0] + ((H - M.b - py) / (H - M.t - M.b)) * (frame().D[1] - frame().D[0]));
  };
  const clamp = (v, [a, b]) => Math.min(b, Math.max(a, v));
  const inside = (n, d) => ({ N: 10 ** clamp(n, frame().N), D: 10 ** clamp(d, frame().D) });

  let points = structuredClone(model.get("plan").points ?? []);
  let chosen = null, history = [], seq = model.get("plan").seq ?? 0, waiting = false, stale = false, sent = 0;

  // --- to the kernel and back: one message under way, the last position sent when it answers
  function send() {
    if (waiting) { stale = true; return; }
    waiting = true; stale = false; sent = performance.now();
    seq += 1;
    model.set("plan", { seq, points: structuredClone(points) });
    model.save_changes();
  }
  function answered() {
    const got = model.get("numbers").seq;
    if (waiting && got === seq) {
      waiting = false;
      root.dataset.ms = (performance.now() - sent).toFixed(1);
      root.dataset.answers = String(Number(root.dataset.answers ?? 0) + 1);
      if (stale) send();
    }
    root.dataset.seq = got;
    root.dataset.busy = waiting || stale ? "1" : "0";
    numbers();
  }
  function remember() { history.push(structuredClone(points)); if (history.length > 100) history.shift(); }
  function changed() { draw(); send(); root.dataset.busy = "1"; }

  // --- what a person does
  function add(where) {
    remember();
    chosen = points.reduce((m, p) => Math.max(m, p.id), -1) + 1;
    points.push({ id: chosen, ...where });
    changed();
    focus();
  }
  function remove() {
    if (chosen === null || !points.some((p) => p.id === chosen)) return;
    remember();
    points = points.filter((p) => p.id !== chosen);
    chosen = points.length ? points[points.length - 1].id : null;
    changed();
    focus();
  }
  function undo() { if (history.length) { points = history.pop(); chosen = null; changed(); } }
  function suggest() {
    remember();
    ask.disabled = true;
    model.send({ type: "suggest" });
  }
  function focus() { layer.querySelector(`[data-id="${chosen}"]`)?.focus({ preventScroll: true }); }
  function key(event, p) {
    const step = (event.shiftKey ? 0.1 : 0.02);
    const move = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (move) {
      remember();
      Object.assign(p, inside(Math.log10(p.N) + move[0], Math.log10(p.D) + move[1]));
      changed();
      focus();
    } else if (event.key === "Delete" || event.key === "Backspace") remove();
    else if (event.key === "z" && (event.ctrlKey || event.metaKey)) undo();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }
  function grab(event, p, g) {
    event.preventDefault();
    chosen = p.id;
    const before = structuredClone(points);
    let moved = false;
    svg.setPointerCapture(event.pointerId);
    mark();
    g.focus({ preventScroll: true });
    const drag = (e) => {
      if (!moved) { history.push(before); moved = true; }
      Object.assign(p, at(e));
      draw();
      send();
      root.dataset.busy = "1";
    };
    const drop = () => {
      svg.removeEventListener("pointermove", drag);
      svg.removeEventListener("pointerup", drop);
      svg.removeEventListener("pointercancel", drop);
      focus();
    };
    svg.addEventListener("pointermove", drag);
    svg.addEventListener("pointerup", drop);
    svg.addEventListener("pointercancel", drop);
  }
  svg.addEventListener("dblclick", (e) => { if (!e.target.closest(".plan")) add(at(e)); });
  svg.addEventListener("pointerdown", (e) => { if (!e.target.closest(".plan")) { chosen = null; mark(); } });
  // JupyterLab's own shortcuts must not take the board's keys
  root.setAttribute("data-lm-suppress-shortcuts", "true");

  // --- the picture
  const back = element("g"), layer = element("g");
  svg.append(back, layer);
  function background() {
    back.replaceChildren();
    const [n0, n1] = frame().N, [d0, d1] = frame().D, id = `sk-${Math.random().toString(36).slice(2)}`;
    const clip = element("clipPath", { id });
    const box = { x: M.l, y: M.t, width: W - M.l - M.r, height: H - M.t - M.b };
    clip.append(element("rect", box));
    back.append(clip, element("rect", { ...box, class: "box" }));
    axis(n0, n1, (v, text) => {
      back.append(element("line", { x1: x(v), x2: x(v), y1: M.t, y2: H - M.b, class: "grid" }));
      if (text) back.append(element("text", { x: x(v), y: H - M.b + 18, "text-anchor": "middle", class: "tick" }, text));
    });
    axis(d0, d1, (v, text) => {
      back.append(element("line", { x1: M.l, x2: W - M.r, y1: y(v), y2: y(v), class: "grid" }));
      if (text) back.append(element("text", { x: M.l - 8, y: y(v) + 4, "text-anchor": "end", class: "tick" }, text));
    });
    const inner = element("g", { "clip-path": `url(#${id})` });
    back.append(inner);
    if (frame().unit === "FLOP") {
      const base = Math.log10(frame().flop);
      for (let c = Math.ceil(n0 + d0 + base); c <= n1 + d1 + base; c += 1)
        guide(inner, "flop", (n) => c - base - n, `10${up(c)} FLOP`, c % 2 === 0);
    }
    for (const t of [1, 10, 100, 1000]) guide(inner, "tpp", (n) => Math.log10(t) + n, `${t} tokens/param`, true);
    for (const r of model.get("locked")) {
      const mark = element("rect", { x: x(r.N) - 4, y: y(r.D) - 4, width: 8, height: 8, class: "done", "data-name": r.name });
      mark.append(element("title", {}, `${r.name} (trained): N ${short(r.N)}, D ${short(r.D)}`));
      inner.append(mark);
    }
    back.append(element("text", { x: (M.l + W - M.r) / 2, y: H - 12, "text-anchor": "middle" }, "model size N (parameters)"));
    back.append(element("text", { transform: `translate(16 ${(M.t + H - M.b) / 2}) rotate(-90)`, "text-anchor": "middle" }, "training tokens D"));
  }
  function axis(lo, hi, put) {
    const marks = hi - lo < 2.2 ? [1, 2, 5] : hi - lo < 4.5 ? [1, 3] : [1];
    for (let k = Math.floor(lo); k <= hi; k += 1)
      for (const m of marks) {
        const v = m * 10 ** k;
        if (Math.log10(v) >= lo && Math.log10(v) <= hi) put(v, short(v));
      }
  }
  function guide(into, cls, line, name, named) {
    const [n0, n1] = frame().N, [d0, d1] = frame().D;
    const falling = line(n1) < line(n0);
    into.append(element("line", { x1: x(10 ** n0), y1: y(10 ** line(n0)), x2: x(10 ** n1), y2: y(10 ** line(n1)), class: `guide ${cls}` }));
    if (!named) return;
    // a rising line is named where it leaves; a falling one where it enters at the left, or leaves at the bottom, so that
    // the two never meet at the top
    const shift = line(0), room = 0.02 * (n1 - n0), left = falling && shift - d1 <= n0;
    if (falling && !left && shift - d0 > n1) return;
    const n = left ? n0 + room : falling ? shift - d0 - room : Math.min(n1, d1 - shift) - room;
    if (n < n0 + room / 2 || n > n1 - room / 2 || line(n) < d0 || line(n) > d1) return;
    const angle = (Math.atan2(y(10 ** line(n1)) - y(10 ** line(n0)), x(10 ** n1) - x(10 ** n0)) * 180) / Math.PI;
    into.append(element("text", { transform: `translate(${x(10 ** n)} ${y(10 ** line(n)) - 4}) rotate(${angle})`,
      "text-anchor": left ? "start" : "end", class: "name" }, name));
  }
  function draw() {
    const old = new Map([...layer.children].map((g) => [Number(g.dataset.id), g]));
    for (const p of points) {
      let g = old.get(p.id);
      if (!g) {
        g = element("g", { class: "plan", tabindex: 0, role: "button", "data-id": p.id });
        g.append(element("circle", { r: 18, class: "halo" }), element("circle", { r: 7.5, class: "dot" }), element("title"));
        g.addEventListener("pointerdown", (e) => grab(e, points.find((q) => q.id === p.id), g));
        g.addEventListener("keydown", (e) => key(e, points.find((q) => q.id === p.id)));
        g.addEventListener("focus", () => { chosen = p.id; mark(); });
        layer.append(g);
      }
      old.delete(p.id);
      g.setAttribute("transform", `translate(${x(p.N)} ${y(p.D)})`);
      const said = `planned: N ${short(p.N)}, D ${short(p.D)}, ${power(p.D / p.N)} tokens per parameter`;
      g.setAttribute("aria-label", said);
      g.querySelector("title").textContent = said;
    }
    for (const g of old.values()) g.remove();
    mark();
  }
  function mark() {
    for (const g of layer.children) g.classList.toggle("on", Number(g.dataset.id) === chosen);
    const p = points.find((q) => q.id === chosen);
    where.textContent = p ? layer.querySelector(`[data-id="${chosen}"]`)?.getAttribute("aria-label") ?? "" : "no planned run chosen";
    cut.disabled = !p;
    back_.disabled = !history.length;
  }

  // --- the side
  const bar = html("div", "bar");
  const button = (text, cls, act) => { const b = html("button", cls, text); b.type = "button"; b.addEventListener("click", act); bar.append(b); return b; };
  const ask = button("Suggest", "main suggest", suggest);
  button("Add", "add", () => add(inside((frame().N[0] + frame().N[1]) / 2, (frame().D[0] + frame().D[1]) / 2)));
  const cut = button("Remove", "remove", remove), back_ = button("Undo", "undo", undo);
  const where = html("div", "where"), list = document.createElement("dl"), error = html("div", "sk-error");
  where.setAttribute("aria-live", "polite");
  error.setAttribute("role", "alert");
  const field = (name, label) => { const d = html("dd", name); list.append(html("dt", "", label), d); return d; };
  const nstar = field("nstar", ""), label = nstar.previousSibling;
  const scale = field("kappa-scale", "condition number, scale block"), full = field("kappa-full", "condition number, all parameters");
  const weak = field("weakest text", "least known combination"), cost = field("cost", "cost of the plan");
  const help = html("div", "help", "Drag the dots. Double click adds a run, Delete removes it, arrow keys move it. Squares are trained and stay.");
  side.append(bar, where, list, error, help);
  function numbers() {
    const r = model.get("numbers"), unit = frame().unit;
    label.textContent = `N* at ${power(r.budget)} ${unit}, expected ${Math.round(100 * r.prob)}% interval`;
    nstar.textContent = r.n_star === null ? "none: no optimum inside" : `${short(r.n_star_low)} to ${short(r.n_star_high)}`;
    if (r.n_star !== null) nstar.append(Object.assign(document.createElement("small"), { textContent: `  \u00d7/\u00f7 ${power(Math.sqrt(r.n_star_high / r.n_star_low))} about ${short(r.n_star)}` }));
    scale.textContent = power(r.kappa.scale);
    full.textContent = power(r.kappa.full);
    scale.dataset.value = String(r.kappa.scale);
    full.dataset.value = String(r.kappa.full);
    weak.textContent = `${r.weakest} (contraction ${r.contraction > 0.99 ? ">0.99" : r.contraction.toFixed(2)})`;
    cost.textContent = `${power(r.cost)} ${unit}`;
    cost.append(Object.assign(document.createElement("small"), { textContent: `  ${points.length} planned; trained so far ${power(r.cost_trained)} ${unit}` }));
    error.textContent = model.get("complaint");
  }

  const fromKernel = () => {
    const plan = model.get("plan");
    ask.disabled = false;
    if (waiting) return; // our own message, or one that ours will overwrite
    seq = plan.seq ?? seq;
    const known = new Set(points.map((p) => p.id));
    points = structuredClone(plan.points ?? []);
    chosen = points.find((p) => !known.has(p.id))?.id ?? chosen; // what was suggested is what one looks at
    draw();
  };
  const complained = () => { ask.disabled = false; numbers(); };
  const reframed = () => { background(); draw(); };
  model.on("change:plan", fromKernel);
  model.on("change:numbers", answered);
  model.on("change:complaint", complained);
  model.on("change:frame", reframed);
  model.on("change:locked", reframed);
  background();
  draw();
  numbers();
  root.dataset.busy = "0";
  return () => {
    model.off("change:plan", fromKernel);
    model.off("change:numbers", answered);
    model.off("change:complaint", complained);
    model.off("change:frame", reframed);
    model.off("change:locked", reframed);
  };
}

export default { render };
