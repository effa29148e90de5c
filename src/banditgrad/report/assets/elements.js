// Building blocks of the page: elements, and the look of a curve.

const SHAPES = {
  circle: "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
  square: "M-3-3h6v6h-6z",
  triangle: "M0-3.8L3.6 2.8H-3.6z",
  diamond: "M0-4L4 0L0 4L-4 0z",
  wedge: "M0 3.8L3.6-2.8H-3.6z",
  plus: "M-1.3-4h2.6v2.7h2.7v2.6h-2.7v2.7h-2.6v-2.7h-2.7v-2.6h2.7z",
  cross: "M-3.8-2L-2-3.8L0-1.8L2-3.8L3.8-2L1.8 0L3.8 2L2 3.8L0 1.8L-2 3.8L-3.8 2L-1.8 0z",
};

const fill = (node, attributes, children) => {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
};
const html = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes = {}, ...children) =>
  fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

const coloured = (node, curve) => {
  node.classList.add("curve");
  node.style.setProperty("--light", curve.light);
  node.style.setProperty("--dark", curve.dark);
  return node;
};
const stroke = (curve) => ({
  class: "line",
  "stroke-width": curve.width,
  "stroke-dasharray": curve.dash.map((length) => length * curve.width).join(" "),
});
const mark = (curve, x, y) =>
  svg("path", { class: "mark", d: SHAPES[curve.marker], transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})` });
const key = (curve) =>
  coloured(
    svg("svg", { class: "key", viewBox: "0 0 34 14", "aria-hidden": "true" },
      svg("path", { ...stroke(curve), d: "M0 7H34" }), mark(curve, 17, 7)),
    curve,
  );
