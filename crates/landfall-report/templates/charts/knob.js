// What a knob does from end to end, and others beside it: a large panel for what it is about, and smaller ones for its price.

// By the index of the series: at the device, in flash, by formula.
const knobColours = [accent, "var(--second)", accent];
const knobSymbols = ["circle", "diamond", "circle"];
const knobShapes = [d3.symbolCircle, d3.symbolDiamond];

function drawKnob(chart, width) {
  const box = document.createElement("div");
  box.className = "panels knob";
  const gap = 20;
  const narrow = width < NARROW;
  const half = narrow ? width : Math.floor((width - gap) / 2);
  chart.panels.forEach((panel, index) => {
    const part = document.createElement("div");
    const title = document.createElement("p");
    title.className = "panel-title";
    title.textContent = panel.log ? `${panel.name}, logarithmic` : panel.name;
    part.append(title, drawKnobPanel(chart, panel, index === 0 ? width : half, index === 0));
    box.append(part);
  });
  const drawn = new Set(chart.panels.flatMap((panel) => panel.lines.map((line) => line.series)));
  const measured = chart.panels.flatMap((panel) => panel.lines).filter((line) => !line.is_computed).map((line) => line.series);
  const keys = [...new Set(measured)].sort().map((series) => ({
    name: chart.series[series], colour: knobColours[series], symbol: knobShapes[series],
  }));
  const computed = chart.series.filter((_, series) => drawn.has(series) && !measured.includes(series));
  return withKeys(keys, box, computed.length ? `dashed: ${computed.join(", ")}` : "");
}

function drawKnobPanel(chart, panel, width, large) {
  const { positions, beside } = chart;
  const [first, last] = [positions[0], positions[positions.length - 1]];
  const turned = last - first;
  const left = 46;
  const right = 12;
  // Others take as much of the width as their names want, and at most three fifths of it.
  const room = width - left - right;
  const each = Math.min(beside.length ? widest(beside) + 10 : 0, (room * 0.6) / Math.max(1, beside.length));
  const tilted = beside.length > 0 && each < widest(beside) + 6;
  // Of the knob's own unit, a place for each of the others: so that both have one scale.
  const share = room - each * (beside.length + 0.5);
  const unit = turned / Math.max(share, 1);
  const place = (of) => last + unit * each * (of + 1);
  const names = new Map(beside.map((name, of) => [place(of), name]));
  const domain = [first - unit * 10, beside.length ? place(beside.length - 1) + unit * each * 0.5 : last + unit * 10];
  const points = panel.lines.filter((line) => !line.is_computed)
    .flatMap((line) => line.points.map((point) => ({ ...point, series: line.series })));
  const marks = panel.marks.map((mark) => ({ ...mark, x: place(mark.of) }));
  const computed = panel.lines.filter((line) => line.is_computed)
    .flatMap((line) => line.points.map((point) => ({ ...point, series: line.series })));
  const all = [...points, ...marks, ...computed];
  const low = d3.min(all, (item) => item.low);
  const high = d3.max(all, (item) => item.high);
  const scale = panel.log ? [low * 0.55, high * 1.3] : [0, high * 1.2 || 1];
  const colour = (item) => knobColours[item.series];
  const ofSeries = (items, series) => items.filter((item) => item.series === series);
  // Those that have room: the last of the knob always, since that is what it can do.
  const across = d3.scaleLinear(domain, [0, room]);
  const half = (item) => textWidth(item.text) / 2 + 2;
  const apart = (one, other) => Math.abs(across(one.x) - across(other.x)) > half(one) + half(other);
  const device = ofSeries([...points, ...marks], 0).sort((one, other) => one.x - other.x);
  const end = device.filter((item) => item.x === last);
  const labelled = device.reduce((some, item) => (some.every((other) => apart(item, other)) ? [...some, item] : some), end);
  const height = (large ? 300 : 190) + (tilted ? 34 : 0);
  return plot({
    width,
    height,
    marginLeft: left,
    marginRight: right,
    marginTop: 14,
    marginBottom: tilted ? 78 : 44,
    x: { domain, axis: null },
    y: {
      type: panel.log ? "log" : "linear", domain: scale, grid: true,
      ticks: panel.log ? logTicks(...scale, Math.log10(scale[1] / scale[0]) < 2.2) : 4,
      tickFormat: rateFormat, label: null,
    },
    symbol: { type: "identity" },
    marks: [
      beside.length ? Plot.ruleX([last + unit * each * 0.42], { stroke: "var(--line)" }) : null,
      Plot.axisX(positions, { text: String, label: null, tickSize: 4 }),
      Plot.text([{ x: (first + last) / 2 }], { x: "x", frameAnchor: "bottom", text: () => chart.axis, dy: 34, fill: "var(--faint)" }),
      beside.length
        ? Plot.axisX([...names.keys()], {
            text: (x) => names.get(x), label: null, tickSize: 0, tickRotate: tilted ? -60 : 0,
          })
        : null,
      computed.length ? Plot.line(computed, { x: "x", y: "value", stroke: accent, strokeWidth: 1.5, strokeDasharray: "5 4", className: COUNTED }) : null,
      ...[1, 0].map((series) =>
        Plot.line(ofSeries(points, series), { x: "x", y: "value", stroke: knobColours[series], strokeWidth: 1.5, strokeOpacity: computed.length && series === 0 ? 0 : 0.7 })),
      // What is written and what flash makes of it belong together.
      Plot.ruleX(d3.groups(marks, (mark) => mark.of).map(([, ones]) => ones).filter((ones) => ones.length > 1), {
        x: (ones) => ones[0].x, y1: (ones) => d3.min(ones, (one) => one.value), y2: (ones) => d3.max(ones, (one) => one.value),
        stroke: "var(--grey)", strokeWidth: 1.5,
      }),
      Plot.ruleX([...points, ...marks].filter((item) => item.low < item.high), {
        x: "x", y1: "low", y2: "high", stroke: colour, strokeWidth: 3, strokeOpacity: 0.45,
      }),
      Plot.dot([...points, ...marks], {
        x: "x", y: "value", r: large ? 4.5 : 4, fill: colour, stroke: "var(--page)", strokeWidth: 1,
        symbol: (item) => knobSymbols[item.series], className: COUNTED,
      }),
      // Below, where no curve of flash is; above, where the axis would be.
      Plot.text(labelled, { x: "x", y: "value", text: "text", dy: panel.log ? 14 : -12, fill: "var(--ink)", ...halo }),
    ],
  });
}
