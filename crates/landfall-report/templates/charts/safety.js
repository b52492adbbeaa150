// Cost against safety: settings in groups by what power cuts did to them, by operations per second. Groups stand in the
// order of their rows.

// By the index of the group: lost nothing, lost, not proven, at risk. Shapes say what colours repeat.
const safetyColours = ["var(--good)", "var(--bad)", "var(--faint)", "var(--doubt)"];
const safetySymbols = ["circle", "times", "square", "triangle"];

function drawSafety(chart, width) {
  const { groups, rows } = chart;
  const beside = (row) => (row.best ? `${row.text}, ${chart.named}` : row.text);
  const layout = rowLayout(rows.map((row) => (row.best ? `${row.label}mm` : row.label)), width, rows.map(beside));
  if (layout.above) {
    layout.step = 33;
  }
  const { domain, marginRight, leftward, ticks } = rateScale(rows, chart.log, width - layout.left,
    (row) => (layout.above ? "" : beside(row)));
  // A heading stands before the rows of each group, at a place of its own.
  const places = [];
  const heads = [];
  d3.group(rows, (row) => row.group).forEach((some, group) => {
    heads.push({ label: ` ${group}`, name: groups[group], group });
    places.push(` ${group}`, ...some.map((row) => row.label));
  });
  const best = rows.filter((row) => row.best);
  const colour = (row) => safetyColours[row.group];
  // What was not proven is named without the colour of what was.
  const strong = (row) => (row.group === 0 ? colour(row) : "var(--ink)");
  const some = (test) => rows.filter(test);
  // A text stands beside its mark, or at the end of the line of its label where that is above the row.
  const besides = (those, more) => [
    [those.filter((row) => !leftward(row)), "high", "start", 9],
    [those.filter(leftward), "low", "end", -9],
  ].filter(([rest]) => rest.length).map(([rest, x, textAnchor, dx]) =>
    Plot.text(rest, { x, y: "label", text: beside, textAnchor, dx, ...halo, fill: "var(--ink)", ...more }));
  const above = (those, more) =>
    [Plot.text(those, { y: "label", text: (row) => row.text.replace(" ops/s", ""), frameAnchor: "right", textAnchor: "end", dy: -12, ...halo, fill: "var(--ink)", ...more })];
  const texts = layout.above ? above : besides;
  const dots = (group, more) => {
    const those = some((row) => row.group === group);
    return those.length
      ? Plot.dot(those, { x: "value", y: "label", symbol: safetySymbols[group], stroke: colour, strokeWidth: 2, className: COUNTED, ...more })
      : null;
  };
  const name = layout.above
    ? { textAnchor: "start", dy: -12, fill: "var(--ink)", ...halo }
    : { textAnchor: "end", dx: -8 };
  const filled = (row) => (row.durable ? colour(row) : "var(--page)");
  return plot({
    width,
    height: places.length * layout.step + 52,
    marginLeft: layout.left,
    marginRight,
    marginTop: 4,
    marginBottom: 44,
    x: { type: chart.log ? "log" : "linear", domain, axis: null },
    y: { domain: places, padding: 0.4, axis: null },
    marks: [
      Plot.gridX(ticks),
      rateAxis(ticks, "operations per second", chart.log),
      Plot.ruleX(best, { x: "value", stroke: strong, strokeDasharray: "4 3" }),
      ...[best, some((row) => !row.best)].map((those) =>
        Plot.text(those, { y: "label", text: "label", frameAnchor: "left", fontWeight: those === best ? BOLD : 400, ...name }),
      ),
      Plot.text(heads, {
        y: "label", text: "name", frameAnchor: "left", textAnchor: "start", dx: layout.above ? 0 : 8 - layout.left, dy: 3,
        fill: colour, fontWeight: BOLD, fontSize: 13, ...halo,
      }),
      Plot.ruleY(rows, { x1: "low", x2: "high", y: "label", stroke: colour, strokeWidth: 3, strokeOpacity: 0.45 }),
      Plot.dot(best, { x: "value", y: "label", r: 9, stroke: strong, strokeWidth: 1.5 }),
      dots(0, { r: 4.5, fill: filled }),
      dots(1, { r: 4.5 }),
      dots(2, { r: 4, fill: "var(--page)" }),
      dots(3, { r: 4, fill: "var(--page)" }),
      ...texts(some((row) => !row.best), {}),
      ...texts(best, { fontWeight: BOLD, fill: strong }),
    ],
  });
}
