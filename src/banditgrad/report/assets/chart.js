// One chart: curves with bands, reading values by hovering or arrow keys, zooming by dragging.

class Chart {
  constructor(host, figure, panel) {
    Object.assign(this, { host, figure, panel, zoom: null, drag: null, at: null });
    const floored = (axis) => (value) => (axis.log && value < axis.floor ? axis.floor : value);
    this.curves = panel.curves.map((curve) => {
      const [median, low, high] = ["median", "low", "high"].map((part) => (curve[part] ?? curve.median).map(parse));
      const x = panel.grids[curve.grid];
      const look = figure.curves[curve.id];
      const drawn = { x: x.map(floored(panel.x)), median, low, high };
      for (const part of ["median", "low", "high"]) drawn[part] = drawn[part].map(floored(panel.y));
      return { id: curve.id, look, x, median, low, high, drawn, banded: "low" in curve };
    });
    this.reset = host.closest(".panel").querySelector(".reset");
    this.reset.addEventListener("click", () => this.unzoom());
    this.tip = html("div", { class: "tip", role: "status", hidden: "" });
    fill(host, { tabindex: 0, role: "group", "aria-label": panel.label }, [this.tip]);
    host.addEventListener("pointerdown", (event) => this.press(event));
    host.addEventListener("pointermove", (event) => this.move(event));
    host.addEventListener("pointerup", (event) => this.release(event));
    host.addEventListener("pointercancel", () => this.leave());
    host.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && !this.drag && this.leave());
    host.addEventListener("dblclick", () => this.unzoom());
    host.addEventListener("keydown", (event) => this.type(event));
    host.addEventListener("blur", () => this.leave());
    new ResizeObserver(() => host.clientWidth !== this.width && this.draw()).observe(host);
  }

  shown() {
    return this.curves.filter((curve) => !this.figure.hidden.has(curve.id));
  }

  ranges() {
    const { x: across, y: up } = this.panel;
    let [left, right, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { drawn } of this.shown()) {
      left = Math.min(left, drawn.x[0]);
      right = Math.max(right, drawn.x.at(-1));
    }
    const x = this.zoom?.x ?? padded(across.log, left, right, 0.02);
    for (const { drawn } of this.shown()) {
      for (let i = 0; i < drawn.x.length; i++) {
        if (drawn.x[i] < x[0] || drawn.x[i] > x[1]) continue;
        for (const value of [drawn.median[i], drawn.low[i], drawn.high[i]]) {
          if (!Number.isFinite(value)) continue;
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
      }
    }
    const within = (value) => Math.min(Math.max(value, up.min ?? -Infinity), up.max ?? Infinity);
    const y = this.zoom?.y ?? padded(up.log, within(low), within(high), 0.05);
    return { x, y };
  }

  draw() {
    const width = (this.width = this.host.clientWidth);
    if (!width) return;
    const height = Math.round(Math.min(Math.max(0.68 * width, 210), 340));
    const { x, y } = (this.range = this.ranges());
    const yTicks = (this.panel.y.log ? logTicks : linearTicks)(y, height / 45);
    const left = 10 + 6.4 * Math.max(...yTicks.map(([, label]) => label.length), 2);
    const box = (this.box = { left, right: width - 8, top: 8, bottom: height - 22 });
    this.x = scale(this.panel.x.log, x, box.left, box.right);
    this.y = scale(this.panel.y.log, y, box.bottom, box.top);
    const xTicks = (this.panel.x.log ? logTicks : linearTicks)(x, Math.min((box.right - box.left) / 55, 7));
    const clip = `clip-${this.host.dataset.place}`;
    const plot = svg("g", { "clip-path": `url(#${clip})` });
    this.hover = svg("g");
    const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" },
      svg("clipPath", { id: clip },
        svg("rect", { x: box.left, y: box.top - 5, width: box.right - box.left + 5, height: box.bottom - box.top + 5 })),
      ...yTicks.map(([value, label]) => this.tick(label, "y", this.y.place(value))),
      ...xTicks.map(([value, label]) => this.tick(label, "x", this.x.place(value))),
      svg("path", { class: "frame", d: `M${box.left} ${box.top}V${box.bottom}H${box.right}` }), plot, this.hover);
    let lost = 0;
    for (const curve of this.shown()) {
      const indices = this.visible(curve);
      const group = coloured(svg("g", { "data-curve": curve.id }), curve.look);
      if (curve.banded) group.append(svg("path", { class: "band", d: this.band(curve, indices) }));
      group.append(svg("path", { ...stroke(curve.look), d: this.line(curve, indices) }), ...this.marks(curve, indices));
      if (indices.some((i) => curve.median[i] === Infinity)) {
        group.append(svg("path", { class: "lost", d: this.lost(curve, indices, box.top + 4 + 7 * lost++) }));
      }
      plot.append(group);
    }
    this.host.querySelector("svg")?.remove();
    this.host.prepend(picture);
    this.reset.hidden = !this.zoom;
    if (this.at !== null) this.show(this.at);
  }

  tick(label, axis, at) {
    const { left, right, top, bottom } = this.box;
    const edge = Math.min(at, right + 8 - 3.6 * label.length); // keeps the last label inside
    return axis === "y"
      ? svg("g", {}, svg("path", { class: "grid", d: `M${left} ${at}H${right}` }),
          svg("text", { class: "tick-y", x: left - 5, y: at + 4, "text-anchor": "end" }, label))
      : svg("g", {}, svg("path", { class: "grid", d: `M${at} ${top}V${bottom}` }),
          svg("text", { class: "tick-x", x: edge, y: bottom + 16, "text-anchor": "middle" }, label));
  }

  // The points in view and one on either side; of many, in each pixel the first, last, least and greatest.
  visible({ drawn: { x, median } }) {
    const [low, high] = this.range.x;
    let first = x.findIndex((value) => value >= low);
    let last = x.findLastIndex((value) => value <= high);
    first = Math.max((first < 0 ? x.length : first) - 1, 0);
    last = Math.min(last + 1, x.length - 1);
    const all = Array.from({ length: last - first + 1 }, (_, k) => first + k);
    if (all.length < 3 * this.width) return all;
    const kept = new Set();
    for (let start = 0; start < all.length; ) {
      const pixel = Math.round(this.x.place(x[all[start]]));
      let [least, most, end] = [all[start], all[start], start];
      for (; end < all.length && Math.round(this.x.place(x[all[end]])) === pixel; end++) {
        if (median[all[end]] < median[least]) least = all[end];
        if (median[all[end]] > median[most]) most = all[end];
      }
      for (const i of [all[start], least, most, all[end - 1]]) kept.add(i);
      start = end;
    }
    return [...kept].sort((a, b) => a - b);
  }

  point(x, y) {
    return `${this.x.place(x).toFixed(1)} ${this.y.place(y).toFixed(1)}`;
  }

  line({ drawn: { x, median } }, indices) {
    let [d, pen] = ["", "M"];
    for (const i of indices) {
      if (Number.isFinite(median[i])) d += pen + this.point(x[i], median[i]);
      pen = Number.isFinite(median[i]) ? "L" : "M";
    }
    return d;
  }

  // Infinite ends of the band lie on the edge of the plot; a NaN interrupts it.
  band({ drawn: { x, low, high } }, indices) {
    const [bottom, top] = this.range.y;
    const end = (value) => (value === Infinity ? top : value === -Infinity ? bottom : value);
    let [d, run] = ["", []];
    const close = () => {
      const back = run.map((i) => this.point(x[i], end(low[i]))).reverse();
      if (run.length) d += `M${run.map((i) => this.point(x[i], end(high[i]))).join("L")}L${back.join("L")}Z`;
      run = [];
    };
    for (const i of indices) Number.isNaN(low[i]) || Number.isNaN(high[i]) ? close() : run.push(i);
    close();
    return d;
  }

  // Few points are all marked, of many some; a point between two gaps is always marked, for it has no line.
  marks({ look, drawn: { x, median } }, indices) {
    const gap = indices.length <= 16 ? 0 : (this.box.right - this.box.left) / 9;
    const there = (k) => Number.isFinite(median[indices[k]]);
    let next = -Infinity;
    const marks = [];
    indices.forEach((i, k) => {
      const at = this.x.place(x[i]);
      if (!there(k) || (at < next && (there(k - 1) || there(k + 1)))) return;
      marks.push(mark(look, at, this.y.place(median[i])));
      next = at + gap;
    });
    return marks;
  }

  // A cross where a run diverges, then a line along the top for as long as it is lost.
  lost({ median, drawn: { x } }, indices, y) {
    let [d, inside] = ["", false];
    for (const i of indices) {
      const at = this.x.place(x[i]);
      if (median[i] === Infinity) d += inside ? `H${at}` : `M${at - 4} ${y - 4}l8 8m0-8l-8 8M${at} ${y}`;
      inside = median[i] === Infinity;
    }
    return d;
  }

  // ---- reading values

  nearest({ drawn: { x } }, at) {
    let [low, high] = [0, x.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.x.place(x[middle]) < at) low = middle;
      else high = middle;
    }
    return Math.abs(this.x.place(x[low]) - at) <= Math.abs(this.x.place(x[high]) - at) ? low : high;
  }

  show(at) {
    const found = this.shown().map((curve) => ({ curve, i: this.nearest(curve, at) }));
    this.hover.replaceChildren();
    this.tip.hidden = found.length === 0;
    if (!found.length) return;
    const distance = ({ curve, i }) => Math.abs(this.x.place(curve.drawn.x[i]) - at);
    const closest = found.reduce((best, next) => (distance(next) < distance(best) ? next : best));
    const x = closest.curve.x[closest.i];
    this.at = this.x.place(closest.curve.drawn.x[closest.i]);
    this.hover.append(svg("path", { class: "cursor", d: `M${this.at} ${this.box.top}V${this.box.bottom}` }));
    const rows = found.map(({ curve, i }) => {
      const own = curve.x[i] === x ? "" : ` (at ${format(curve.x[i])})`;
      const range = curve.banded ? `${format(curve.low[i], 3)} – ${format(curve.high[i], 3)}` : "";
      const [cx, cy] = [this.x.place(curve.drawn.x[i]), this.y.place(curve.drawn.median[i])];
      if (cy >= this.box.top && cy <= this.box.bottom && Number.isFinite(curve.median[i])) {
        this.hover.append(coloured(svg("circle", { class: "dot", cx, cy, r: 4.5 }), curve.look));
      }
      return html("tr", {}, html("td", {}, key(curve.look)), html("td", {}, curve.look.name + own),
        html("td", { class: "number" }, format(curve.median[i], 3)), html("td", { class: "number range" }, range));
    });
    this.tip.replaceChildren(html("b", {}, `${this.panel.x.label} = ${format(x)}`), html("table", {}, ...rows));
    // Below the chart, else above it, else as low as the window allows.
    const { top, height } = this.host.getBoundingClientRect();
    const [tall, bottom] = [this.tip.offsetHeight, window.innerHeight - top];
    const elsewhere = top >= tall ? -tall : Math.max(bottom - tall, -top);
    this.tip.style.top = `${height + tall <= bottom ? height : elsewhere}px`;
  }

  leave() {
    this.at = this.drag = null;
    this.tip.hidden = true;
    this.hover.replaceChildren();
  }

  // ---- zooming

  position(event) {
    const outline = this.host.getBoundingClientRect();
    const { left, right, top, bottom } = this.box;
    return {
      x: Math.min(Math.max(event.clientX - outline.left, left), right),
      y: Math.min(Math.max(event.clientY - outline.top, top), bottom),
    };
  }

  press(event) {
    if (event.button !== 0) return;
    this.drag = this.position(event);
    this.host.setPointerCapture(event.pointerId);
    this.show(this.drag.x);
  }

  move(event) {
    const now = this.position(event);
    if (!this.drag) return this.show(now.x);
    const [x0, x1, y0, y1] = this.corners(now);
    this.tip.hidden = true;
    this.hover.replaceChildren(svg("rect", { class: "box", x: x0, y: y0, width: x1 - x0, height: y1 - y0 }));
  }

  // A flat drag takes the whole height.
  corners(now) {
    const { x, y } = this.drag;
    const flat = Math.abs(now.y - y) < 24;
    const [top, bottom] = flat ? [this.box.top, this.box.bottom] : [Math.min(y, now.y), Math.max(y, now.y)];
    return [Math.min(x, now.x), Math.max(x, now.x), top, bottom, flat];
  }

  release(event) {
    if (!this.drag) return;
    const now = this.position(event);
    const [x0, x1, y0, y1, flat] = this.corners(now);
    this.drag = null;
    const x = [this.x.value(x0), this.x.value(x1)];
    const y = flat ? null : [this.y.value(y1), this.y.value(y0)];
    // Closer than this, neighbouring doubles would be seen.
    const deep = [x, y].some((ends) => ends && ends[1] - ends[0] < 1e-9 * Math.max(...ends.map(Math.abs)));
    if (x1 - x0 < 8 || deep) return this.show(now.x);
    this.zoom = { x, y };
    this.at = null;
    this.draw();
  }

  unzoom() {
    this.zoom = this.at = null;
    this.tip.hidden = true;
    this.draw();
  }

  type(event) {
    if (event.key === "Escape") return this.unzoom();
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const curve = this.shown()[0];
    if (!step || !curve) return;
    event.preventDefault();
    const last = curve.x.length - 1;
    const next = this.at === null ? (step > 0 ? 0 : last) : this.nearest(curve, this.at) + step;
    this.show(this.x.place(curve.drawn.x[Math.min(Math.max(next, 0), last)]));
  }
}
