// Numbers as text, ticks, and the way from values to the screen and back.

const parse = (value) => (value === null ? NaN : Number(value === "inf" ? Infinity : value === "-inf" ? -Infinity : value));
const raised = (n) => [...String(n)].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("");

const format = (value, digits = 4) => {
  if (value === Infinity) return "diverged";
  if (!Number.isFinite(value)) return "no value";
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-3 && size < 1e5)) {
    return String(Number(value.toPrecision(digits))).replace("-", "−");
  }
  const [mantissa, exponent] = value.toExponential(digits - 1).split("e").map(Number);
  const front = mantissa === 1 ? "" : mantissa === -1 ? "−" : `${mantissa}×`.replace("-", "−");
  return `${front}10${raised(exponent)}`;
};

const linearTicks = ([low, high], count) => {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((multiple) => multiple * power >= 0.999 * rough);
  const digits = Math.floor(Math.log10(Math.max(Math.abs(low), Math.abs(high)) / step)) + 2;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-6); k * step <= high + 1e-6 * step; k++) ticks.push(k * step);
  return ticks.map((value) => [value, format(value, Math.min(Math.max(digits, 1), 15))]);
};

const logTicks = ([low, high], count) => {
  const first = Math.ceil(Math.log10(low) - 1e-9);
  const last = Math.floor(Math.log10(high) + 1e-9);
  const ticks = [];
  let label = (value) => `10${raised(Math.round(Math.log10(value)))}`;
  if (last - first >= 1) {
    const stride = Math.ceil((last - first + 1) / count);
    for (let e = Math.ceil(first / stride) * stride; e <= last; e += stride) ticks.push(10 ** e);
  }
  if (ticks.length < 2) {
    ticks.length = 0;
    label = (value) => format(value, 2);
    for (let e = first - 1; e <= last; e++) for (const m of [1, 2, 5]) ticks.push(m * 10 ** e);
  }
  const inside = ticks.filter((value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
  return inside.length < 2 ? linearTicks([low, high], count) : inside.map((value) => [value, label(value)]);
};

const padded = (log, low, high, margin) => {
  if (!(low <= high)) return log ? [0.1, 1] : [0, 1];
  if (log) {
    const pad = low < high ? (high / low) ** margin : 3;
    return [low / pad, high * pad];
  }
  const pad = low < high ? margin * (high - low) : 0.1 * Math.abs(low) || 1;
  return [low - pad, high + pad];
};

// Places values on the screen between two coordinates, and reads them back.
const scale = (log, [low, high], from, to) => {
  const bend = log ? Math.log10 : (value) => value;
  const start = bend(low);
  const unit = (to - from) / (bend(high) - start);
  return {
    place: (value) => Math.min(Math.max(from + (bend(value) - start) * unit, -1e5), 1e5),
    value: (at) => (log ? 10 ** (start + (at - from) / unit) : start + (at - from) / unit),
  };
};
