// The charts of experiments on databases: a figure along the number of clients, a panel per site.

function drawClients(chart, width) {
  const columns = Math.max(1, Math.min(3, chart.panels.length, Math.floor(width / 220)));
  const rows = Math.ceil(chart.panels.length / columns);
  const panels = chart.panels.map((panel, index) => ({
    ...panel,
    column: index % columns,
    row: Math.floor(index / columns),
  }));
  const inFacet = { fx: "column", fy: "row" };
  const points = panels.flatMap((panel) =>
    panel.points.map((point) => ({ ...point, column: panel.column, row: panel.row })));
  const numbers = [...new Set(points.map((point) => point.clients))].sort((a, b) => a - b);
  // Series stand a little apart, so that their intervals do not hide each other.
  const shift = (point) => point.clients * 2 ** ((point.series - (chart.series.length - 1) / 2) * 0.16);
  const colour = (point) => seriesColours[point.series];
  const low = d3.min(points, (point) => point.low);
  const high = d3.max(points, (point) => point.high);
  const domain = chart.log ? [low * 0.8, high * 1.15] : [0, high * 1.05 || 1];
  const svg = plot({
    width,
    height: rows * 200 + 42,
    marginLeft: 46,
    marginRight: 10,
    marginTop: 24,
    marginBottom: 38,
    fx: { axis: null, padding: 0.1 },
    fy: { axis: null, padding: 0.22 },
    x: {
      type: "log", base: 2, domain: [numbers[0] / 2 ** 0.6, numbers[numbers.length - 1] * 2 ** 0.6],
      ticks: numbers, tickFormat: String, label: "clients", labelAnchor: "center", labelArrow: "none",
    },
    y: {
      type: chart.log ? "log" : "linear", domain, grid: true,
      ticks: chart.log ? logTicks(...domain, Math.log10(domain[1] / domain[0]) < 3) : 4,
      tickFormat: rateFormat, label: null,
    },
    symbol: { type: "identity" },
    marks: [
      Plot.line(points, {
        ...inFacet, x: shift, y: "value", z: (point) => `${point.column} ${point.row} ${point.series}`,
        stroke: colour, strokeWidth: 1.5, strokeOpacity: 0.7,
      }),
      Plot.ruleX(points, { ...inFacet, x: shift, y1: "low", y2: "high", stroke: colour, strokeWidth: 3, strokeOpacity: 0.45 }),
      Plot.dot(points, {
        ...inFacet, x: shift, y: "value", r: 4, fill: colour,
        symbol: (point) => seriesSymbols[point.series], className: COUNTED,
      }),
      Plot.text(panels, { ...inFacet, text: "label", frameAnchor: "top-left", dy: -17, fontWeight: 600 }),
    ],
  });
  const symbols = [d3.symbolCircle, d3.symbolSquare];
  return withKeys(
    chart.series.map((name, index) => ({ name, colour: seriesColours[index], symbol: symbols[index] })),
    svg,
    chart.log ? `${chart.axis}, logarithmic` : chart.axis,
  );
}
