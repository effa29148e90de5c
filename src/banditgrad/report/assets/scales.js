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

// Powers of ten where there are three or more; else 1, 2, 5 times these; else what a linear axis has.
const logTicks = ([low, high], count) => {
  const inside = (values) => values.filter((value) => value >= low * (1 - 1e-9) && value <= high * (1 + 1e-9));
  const first = Math.floor(Math.log10(low));
  const powers = Array.from({ length: Math.ceil(Math.log10(high)) - first + 1 }, (_, k) => first + k);
  const decades = inside(powers.map((exponent) => 10 ** exponent));
  if (decades.length >= 3) {
    const stride = Math.ceil(decades.length / count);
    const exponents = decades.map((value) => Math.round(Math.log10(value)));
    return exponents.filter((e) => e % stride === 0).map((e) => [10 ** e, `10${raised(e)}`]);
  }
  const finer = inside(powers.flatMap((exponent) => [1, 2, 5].map((multiple) => multiple * 10 ** exponent)));
  return finer.length < 2 ? linearTicks([low, high], count) : finer.map((value) => [value, format(value, 2)]);
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
