// The charts of experiment stream: MB/s of its phases.

// By the index of the phase: hand-over, sync, total.
const phaseColours = [accent, "var(--good)", "var(--second)"];
const phaseSymbols = ["circle", "triangle", "square"];
const phaseShapes = [d3.symbolCircle, d3.symbolTriangle, d3.symbolSquare];
const phaseColour = (mark) => phaseColours[mark.phase];
const phaseSymbol = (mark) => phaseSymbols[mark.phase];

const phaseKeys = (phases, marks) =>
  phases
    .map((name, index) => ({ name, index, colour: phaseColours[index], symbol: phaseShapes[index] }))
    .filter(({ index }) => marks.some((mark) => mark.phase === index));

const roundsOf = (marks) => marks.flatMap((mark) => mark.rounds.map((round) => ({ ...mark, round })));
const lowest = (mark) => Math.min(mark.low, ...mark.rounds);
const highest = (mark) => Math.max(mark.high, ...mark.rounds);

function drawSizes(chart, width) {
  const columns = Math.max(1, Math.min(3, chart.panels.length, Math.floor(width / 260)));
  const rows = Math.ceil(chart.panels.length / columns);
  const panels = chart.panels.map((panel, index) => ({
    ...panel,
    column: index % columns,
    row: Math.floor(index / columns),
  }));
  const inFacet = { fx: "column", fy: "row" };
  const placed = (panel, more) => ({ ...more, column: panel.column, row: panel.row });
  // Phases stand a little apart, so that their intervals do not hide each other.
  const shift = (point) => point.x * 2 ** ((point.phase - 1) * 0.2);
  const points = panels.flatMap((panel) => panel.points.map((point) => placed(panel, point)));
  const rounds = roundsOf(points);
  const walls = panels.filter((panel) => panel.wall).map((panel) => placed(panel, { from: panel.wall[0], to: panel.wall[1] }));
  const limits = chart.limit === null ? [] : panels.map((panel) => placed(panel, { limit: chart.limit }));
  const low = d3.min(points, lowest);
  const high = d3.max(points, highest);
  // Labels of walls and limits stand above all marks.
  const domain = chart.log ? [low * 0.8, high * (high / low) ** 0.3] : [0, high * 1.3];
  const sizes = chart.ticks.map(([size]) => size);
  const extent = [sizes[0] / 2 ** 0.45, sizes[sizes.length - 1] * 2 ** 0.45];
  const names = new Map(chart.ticks);
  // Every label of a size, or every second one where they would touch.
  const room = (width - 56) / columns / 1.12 / sizes.length;
  const step = room < widest([...names.values()]) + 8 ? 2 : 1;
  const rightOfLimit = Math.log2(chart.limit / extent[0]) < Math.log2(extent[1] / extent[0]) / 2;
  const svg = plot({
    width,
    height: rows * 270 + 42,
    marginLeft: 46,
    marginRight: 10,
    marginTop: 24,
    marginBottom: 38,
    fx: { axis: null, padding: 0.1 },
    fy: { axis: null, padding: 0.2 },
    x: {
      type: "log", base: 2, domain: extent,
      ticks: sizes.filter((_, index) => index % step === 0),
      tickFormat: (size) => names.get(size) ?? "",
      label: "size of the state", labelAnchor: "center", labelArrow: "none",
    },
    y: {
      type: chart.log ? "log" : "linear", domain, grid: true,
      ticks: chart.log ? logTicks(...domain, Math.log10(domain[1] / domain[0]) < 3) : 5,
      tickFormat: rateFormat, label: null,
    },
    symbol: { type: "identity" },
    marks: [
      Plot.rect(walls, { ...inFacet, x1: "from", x2: "to", fill: "var(--grey)", fillOpacity: 0.35, className: COUNTED }),
      Plot.ruleX(limits, { ...inFacet, x: "limit", stroke: "var(--ink)", strokeDasharray: "4 3", className: COUNTED }),
      Plot.line(points, { ...inFacet, x: shift, y: "value", z: "phase", stroke: phaseColour, strokeWidth: 1.25, strokeOpacity: 0.55 }),
      Plot.dot(rounds, {
        ...inFacet, x: shift, y: "round", r: 2.2, fill: phaseColour, fillOpacity: 0.45, stroke: "none",
        symbol: phaseSymbol, className: COUNTED,
      }),
      Plot.ruleX(points, { ...inFacet, x: shift, y1: "low", y2: "high", stroke: phaseColour, strokeWidth: 2.5, strokeOpacity: 0.5 }),
      Plot.dot(points, { ...inFacet, x: shift, y: "value", r: 4, fill: phaseColour, symbol: phaseSymbol, className: COUNTED }),
      Plot.text(walls, {
        ...inFacet, x: (wall) => Math.sqrt(wall.from * wall.to), frameAnchor: "top", lineAnchor: "top", dy: 3,
        text: () => "wall", fill: "var(--ink)", ...halo,
      }),
      Plot.text(limits, {
        ...inFacet, x: "limit", frameAnchor: "top", lineAnchor: "top", dy: 17,
        dx: rightOfLimit ? 4 : -4, textAnchor: rightOfLimit ? "start" : "end",
        text: () => "dirty limit", fill: "var(--ink)", ...halo,
      }),
      Plot.text(panels, { ...inFacet, text: "label", frameAnchor: "top-left", dy: -17, fontWeight: 600 }),
    ],
  });
  return withKeys(phaseKeys(chart.phases, points), svg, chart.log ? "MB per second, logarithmic" : "MB per second");
}

function drawPhases(chart, width) {
  const { rows } = chart;
  const labels = rows.map((row) => row.label);
  const layout = rowLayout(labels, width);
  const marks = rows.flatMap((row) =>
    row.marks.map((mark) => ({ ...mark, label: row.label, low: lowest(mark), high: highest(mark), interval: [mark.low, mark.high] })));
  const missing = rows.filter((row) => row.marks.length === 0);
  const textOf = (mark) => mark.text;
  const { domain, marginRight, leftward, ticks } = rateScale(marks, chart.log, width - layout.left, textOf);
  const step = layout.above ? 64 : layout.step + 14;
  // The hand-over stands above the total, and a label that is above its row stands over both.
  const lift = (phase) => (phase === 0 ? -8 : 8) + (layout.above ? 8 : 0);
  const ofPhase = (phase) => {
    const some = marks.filter((mark) => mark.phase === phase);
    const dy = lift(phase);
    const side = (those, x, textAnchor, dx) =>
      those.length ? Plot.text(those, { x, y: "label", text: textOf, textAnchor, dx, dy }) : null;
    return [
      Plot.ruleY(some, {
        x1: (mark) => mark.interval[0], x2: (mark) => mark.interval[1], y: "label", dy,
        stroke: phaseColour, strokeWidth: 3, strokeOpacity: 0.45,
      }),
      Plot.dot(roundsOf(some), {
        x: "round", y: "label", dy, r: 2.4, fill: phaseColour, fillOpacity: 0.5, stroke: "none",
        symbol: phaseSymbol, className: COUNTED,
      }),
      Plot.dot(some, { x: "value", y: "label", dy, r: 4.5, fill: phaseColour, symbol: phaseSymbol, className: COUNTED }),
      side(some.filter((mark) => !leftward(mark)), "high", "start", 9),
      side(some.filter(leftward), "low", "end", -9),
    ];
  };
  const svg = plot({
    width,
    height: rows.length * step + 52,
    marginLeft: layout.left,
    marginRight,
    marginTop: 8,
    marginBottom: 44,
    x: { type: chart.log ? "log" : "linear", domain, axis: null },
    y: { domain: labels, padding: 0.4, axis: null },
    symbol: { type: "identity" },
    marks: [
      rowLabels(layout, rows, -20),
      Plot.gridX(ticks),
      rateAxis(ticks, "MB per second", chart.log),
      ...ofPhase(0),
      ...ofPhase(2),
      missing.length
        ? Plot.text(missing, { y: "label", text: () => "not measured here", frameAnchor: "left", textAnchor: "start", dx: 6, fill: "var(--faint)", fontStyle: "italic" })
        : null,
    ],
  });
  return withKeys(phaseKeys(chart.phases, marks), svg);
}
