// The charts of experiment sync: rates, lines along an axis, latency.

function drawRates(chart, width) {
  const { rows } = chart;
  const measured = rows.filter((row) => row.value !== null);
  const missing = rows.filter((row) => row.value === null);
  // Where nothing is durable the heading says so, and each row need not.
  const mixed = measured.some((row) => row.durable);
  const note = (row) => (row.durable || !mixed ? row.text : `${row.text}, not durable`);
  const layout = rowLayout(rows.map((row) => row.label), width);
  const { domain, marginRight, leftward, ticks } = rateScale(measured, chart.log, width - layout.left, note);
  const side = (some, x, textAnchor, dx) =>
    some.length ? Plot.text(some, { x, y: "label", text: note, textAnchor, dx }) : null;
  return plot({
    width,
    height: rows.length * layout.step + 52,
    marginLeft: layout.left,
    marginRight,
    marginTop: 8,
    marginBottom: 44,
    x: {
      type: chart.log ? "log" : "linear",
      domain,
      axis: null,
    },
    y: { domain: rows.map((row) => row.label), padding: 0.4, axis: null },
    marks: [
      rowLabels(layout, rows),
      Plot.gridX(ticks),
      rateAxis(ticks, chart.unit, chart.log),
      chart.reference === null ? null : Plot.ruleX([chart.reference], { stroke: "var(--ink)", strokeDasharray: "4 3" }),
      Plot.ruleY(measured, { x1: "low", x2: "high", y: "label", stroke: accent, strokeWidth: 3, strokeOpacity: 0.45 }),
      Plot.dot(measured, {
        x: "value", y: "label", r: 4.5, stroke: accent, strokeWidth: 2,
        fill: (row) => (row.durable ? "var(--accent)" : "var(--page)"),
        className: COUNTED,
      }),
      side(measured.filter((row) => !leftward(row)), "high", "start", 9),
      side(measured.filter(leftward), "low", "end", -9),
      missing.length
        ? Plot.text(missing, { y: "label", text: "text", frameAnchor: "left", textAnchor: "start", dx: 6, fill: "var(--faint)", fontStyle: "italic" })
        : null,
    ],
  });
}

function drawLines(chart, width) {
  const { points, series } = chart;
  const used = series.map((_, index) => index).filter((index) => points.some((point) => point.series === index));
  // Series stand a little apart, so that their intervals do not hide each other.
  const shift = (point) =>
    used.length < 2 || point.series === null ? point.x : point.x * 2 ** ((point.series - 0.5) * 0.14);
  const most = d3.max(points, (point) => point.high);
  const names = new Map(points.map((point) => [point.x, point.name]));
  const ticks = [...names.keys()];
  const extent = [ticks[0] / 2 ** 0.2, ticks[ticks.length - 1] * 2 ** 0.2];
  const colour = (point) => seriesColours[point.series ?? 0];
  const lines = used.length ? used : [0];
  const svg = plot({
    width,
    height: Math.min(340, Math.max(260, width * 0.42)),
    marginLeft: 48,
    marginTop: 26,
    marginRight: 16,
    marginBottom: 44,
    x: { type: "log", base: 2, domain: extent, ticks, tickFormat: (value) => names.get(value) ?? "", label: chart.axis, labelAnchor: "center", labelArrow: "none" },
    y: { domain: [0, most * 1.04], grid: true, ticks: 5, tickFormat: rateFormat, label: "operations per second", labelArrow: "none" },
    symbol: { type: "identity" },
    marks: [
      ...lines.map((index) =>
        Plot.line(points.filter((point) => point.series === index || point.series === null), {
          x: shift, y: "value", stroke: seriesColours[index], strokeWidth: 1.5, strokeOpacity: 0.8,
        })),
      Plot.ruleX(points, { x: shift, y1: "low", y2: "high", stroke: colour, strokeWidth: 3, strokeOpacity: 0.45 }),
      Plot.dot(points, {
        x: shift, y: "value", r: 4.5, stroke: colour, strokeWidth: 2,
        fill: (point) => (point.durable ? colour(point) : "var(--page)"),
        symbol: (point) => seriesSymbols[point.series ?? 0],
        className: COUNTED,
      }),
    ],
  });
  if (used.length < 2) {
    return svg;
  }
  const symbols = [d3.symbolCircle, d3.symbolSquare];
  return withKeys(
    used.map((index) => ({ name: series[index], colour: seriesColours[index], symbol: symbols[index] })),
    svg,
  );
}

// The hundredth percentile is at infinity; it gets a place of its own at the end.
const LAST = 4.7;
const stretch = (percentile) => (percentile >= 100 ? LAST : -Math.log10(1 - percentile / 100));

function drawLatency(chart, width) {
  const [left, right, padding] = [48, 10, 0.12];
  const heading = (curve) => (curve.durable ? curve.label : `✕ ${curve.label}`);
  // A column is as wide as its heading, which is bold; on a phone there are two all the same, and what is too long is cut.
  const least = Math.max(145, widest(chart.curves.map(heading), BOLD)) / (1 - padding);
  const columns = Math.max(2, Math.min(5, Math.floor((width - left - right) / least)));
  const rows = Math.ceil(chart.curves.length / columns);
  const spots = chart.curves.flatMap((curve, index) =>
    curve.points.map(([percentile, latency]) => ({
      x: stretch(percentile),
      latency: Math.max(latency, 0.01),
      index,
      column: index % columns,
      row: Math.floor(index / columns),
    })));
  const titles = chart.curves.map((curve, index) => ({
    text: heading(curve),
    column: index % columns,
    row: Math.floor(index / columns),
  }));
  const inFacet = { fx: "column", fy: "row" };
  return plot({
    width,
    height: rows * 150 + 46,
    marginLeft: left,
    marginRight: right,
    marginTop: 22,
    marginBottom: 40,
    fx: { axis: null, padding },
    fy: { axis: null, padding: 0.22 },
    x: {
      domain: [0, LAST],
      ticks: [50, 90, 99, 99.9, 100].map(stretch),
      tickFormat: (_, index) => ["50", "90", "99", "99.9", "max"][index],
      label: "percentile",
      labelAnchor: "center",
      labelArrow: "none",
    },
    y: {
      type: "log",
      grid: true,
      ticks: logTicks(d3.min(spots, (spot) => spot.latency), d3.max(spots, (spot) => spot.latency), false),
      tickFormat: rateFormat,
      label: null,
    },
    marks: [
      Plot.line(spots, { x: "x", y: "latency", z: "index", stroke: "var(--grey)", strokeWidth: 1 }),
      Plot.line(spots, { ...inFacet, x: "x", y: "latency", z: "index", stroke: accent, strokeWidth: 2.25, className: COUNTED }),
      Plot.text(titles, {
        ...inFacet, text: "text", frameAnchor: "top-left", dy: -15, fontWeight: 600,
        lineWidth: ((width - left - right) / columns) * (1 - padding) / 13, textOverflow: "ellipsis-middle",
      }),
    ],
  });
}
