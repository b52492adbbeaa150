// What the charts have in common: formats, scales, labels of rows, keys.
//
// The files of this directory make one script with report.js, in which they share their names.
"use strict";

const NARROW = 560;
const accent = "var(--accent)";
const seriesColours = [accent, "var(--second)"];
const seriesSymbols = ["circle", "square"];
// Class of the groups whose marks are counted.
const COUNTED = "counted";
// What keeps a text readable over a line, and how wide it is.
const HALO = 4;
const halo = { stroke: "var(--page)", strokeWidth: HALO, paintOrder: "stroke" };

const rateFormat = (value) =>
  value >= 1e6 ? `${+(value / 1e6).toPrecision(3)}M`
  : value >= 1e3 ? `${+(value / 1e3).toPrecision(3)}k`
  : `${+value.toPrecision(3)}`;

const ruler = document.createElement("canvas").getContext("2d");
const BOLD = 700;
const textWidth = (text, weight = 400) => {
  ruler.font = `${weight} 12px system-ui, sans-serif`;
  return ruler.measureText(text).width;
};
const widest = (texts, weight) => Math.ceil(Math.max(0, ...texts.map((text) => textWidth(text, weight))));

const plot = (options) =>
  Plot.plot({
    ...options,
    style: { overflow: "visible" },
    marks: options.marks.filter((mark) => mark !== null),
  });

const powersOfTen = (low, high) =>
  d3.range(Math.ceil(Math.log10(low)), Math.floor(Math.log10(high)) + 1).map((power) => 10 ** power);

// Ticks of a logarithmic scale that can all be labelled: powers of ten, and 2 and 5 times those if
// there is room.
function logTicks(low, high, roomy) {
  const powers = powersOfTen(low, high);
  if (!roomy && powers.length > 1) {
    return powers;
  }
  return powersOfTen(low / 10, high)
    .flatMap((power) => [power, 2 * power, 5 * power])
    .filter((value) => low <= value && value <= high);
}

// Those whose labels do not stick out of the chart at its left: where the rows' labels stand above them there is no margin.
function withRoom(ticks, place) {
  return ticks.filter((tick) => place(tick) + HALO >= textWidth(rateFormat(tick)) / 2);
}

// Labels stand left of the rows, or above them where they and the `texts` beside the marks would leave too little of
// the width.
function rowLayout(labels, width, texts = []) {
  const wide = widest(labels);
  const above = wide > width * 0.42 || wide + widest(texts) > width * 0.7;
  return { above, width, left: above ? 4 : wide + 14, step: above ? 40 : 26 };
}

function rowLabels(layout, rows, dy = -15) {
  return layout.above
    // What is too long even there is cut in its middle; its title and the table have all of it.
    ? Plot.text(rows, {
        y: "label", text: "label", frameAnchor: "left", textAnchor: "start", dy,
        lineWidth: layout.width / 14, textOverflow: "ellipsis-middle",
      })
    : Plot.axisY({ tickSize: 0, label: null, tickPadding: 8 });
}

// A horizontal scale of rates for items with `low` and `high`, with room for a text beside each. A text
// stands right of its interval, or left of it where the right has no room.
function rateScale(items, log, room, textOf) {
  const most = d3.max(items, (item) => item.high) || 1;
  const least = d3.min(items, (item) => item.low);
  // A logarithmic axis ends with a label, if one is near.
  const next = log ? logTicks(most, most * 2.5, true)[0] : most;
  const domain = log ? [least * 0.8, next * 1.05] : [0, most * 1.01];
  const position = (log ? d3.scaleLog() : d3.scaleLinear()).domain(domain);
  const leftward = (item) => log && position(item.low) > 0.55;
  const overhang = (item) => {
    const text = textWidth(textOf(item), item.best ? BOLD : undefined) + 18;
    return leftward(item) ? 0 : room - (room - text) / Math.max(position(item.high), 0.01);
  };
  const marginRight = Math.max(18, ...items.map(overhang));
  const space = room - marginRight;
  const all = log
    ? logTicks(...domain, space / Math.log10(domain[1] / domain[0]) > 130)
    : position.ticks(Math.max(2, Math.min(7, Math.floor(space / 55))));
  const ticks = withRoom(all, (tick) => position(tick) * space);
  return { domain, marginRight, leftward, ticks };
}

function rateAxis(ticks, label, log) {
  return Plot.axisX(ticks, {
    // As the text itself, because a logarithmic scale drops labels that it finds crowded.
    text: rateFormat,
    label: log ? `${label} (logarithmic)` : label,
    labelAnchor: "center",
    labelArrow: "none",
  });
}

// Signs before the names of series; colour only repeats what shape says.
function keysOf(entries) {
  const keys = document.createElement("p");
  keys.className = "keys";
  for (const { name, colour, symbol } of entries) {
    const key = document.createElement("span");
    const sign = d3.create("svg").attr("width", 12).attr("height", 12);
    sign.append("path")
      .attr("transform", "translate(6,6)")
      .attr("fill", colour)
      .attr("d", d3.symbol(symbol, 56)());
    key.append(sign.node(), name);
    keys.append(key);
  }
  return keys;
}

function withKeys(entries, drawing, note) {
  const box = document.createElement("div");
  const keys = keysOf(entries);
  if (note) {
    const last = document.createElement("span");
    last.className = "unit";
    last.textContent = note;
    keys.append(last);
  }
  box.append(keys, drawing);
  return box;
}

function drawCosts(chart, width) {
  const narrow = width < NARROW;
  const { labels } = chart;
  const box = document.createElement("div");
  box.className = "panels";
  const gap = 16;
  const layout = rowLayout(labels, narrow ? width : width * 0.6);
  const share = (width - layout.left - gap * (chart.panels.length - 1)) / chart.panels.length;
  chart.panels.forEach((panel, index) => {
    const labelled = narrow || index === 0;
    const left = labelled ? layout.left : 4;
    const svg = plot({
      width: Math.floor(narrow ? width : labelled ? share + left : share),
      height: labels.length * (layout.above ? 36 : 22) + 8,
      marginLeft: left,
      marginRight: widest(panel.bars.map((bar) => bar.text)) + 8,
      marginTop: 4,
      marginBottom: 4,
      x: { domain: [0, d3.max(panel.bars, (bar) => bar.value) || 1], axis: null },
      y: { domain: labels, padding: layout.above ? 0.6 : 0.35, axis: null },
      marks: [
        labelled ? rowLabels(layout, labels.map((label) => ({ label }))) : null,
        Plot.ruleX([0], { stroke: "var(--line)" }),
        Plot.barX(panel.bars, {
          x: "value", y: "label", stroke: accent, strokeWidth: 1,
          fill: (bar) => (bar.bound ? "var(--page)" : "var(--accent)"),
          className: COUNTED,
        }),
        Plot.text(panel.bars, { x: "value", y: "label", text: "text", textAnchor: "start", dx: 5 }),
      ],
    });
    const part = document.createElement("div");
    // A title that is wider than its panel takes two lines, and no room from the next panel.
    part.style.width = svg.getAttribute("width") + "px";
    const title = document.createElement("p");
    title.className = "panel-title";
    title.style.paddingLeft = `${left}px`;
    title.textContent = panel.name;
    part.append(title, svg);
    box.append(part);
  });
  return box;
}
