// A figure of many machines: a dot for each, in a row for each model. Those that are named stand beneath the others, each
// with its name beside it.

const dotColours = { worse: "var(--bad)", better: "var(--doubt)" };
const dotSymbols = { worse: "times", better: "triangle" };

// Heights in pixels: of the dots that have no name, of a line of those that have one, and between rows.
const SWARM_BAND = 26;
const NAMED_LINE = 17;
const ROW_GAP = 22;

// Puts named dots into as few lines as have room for their names. A name stands right of its dot, or left of it where the
// right has no room.
function lanesOf(named, position, right) {
  const ends = [];
  return [...named]
    .sort((one, other) => one.value - other.value)
    .map((dot) => {
      const wide = textWidth(dot.label) + 22;
      const x = position(dot.value);
      const leftward = x + wide > right;
      const [from, to] = leftward ? [x - wide, x + 8] : [x - 8, x + wide];
      let lane = ends.findIndex((end) => end < from);
      lane = lane < 0 ? ends.length : lane;
      ends[lane] = to;
      return { ...dot, leftward, lane };
    });
}

function drawDots(chart, width) {
  const { rows } = chart;
  const values = rows.flatMap((row) => row.dots.map((dot) => dot.value));
  const [least, most] = d3.extent(values);
  const layout = rowLayout(rows.map((row) => row.label), width);
  const marginRight = 18;
  const domain = chart.log ? [least / 1.12, most * 1.12] : [0, most * 1.04];
  const scale = (chart.log ? d3.scaleLog() : d3.scaleLinear()).domain(domain).range([layout.left, width - marginRight]);
  const space = width - marginRight - layout.left;
  const ticks = withRoom(chart.log
    ? logTicks(...domain, space / Math.log10(domain[1] / domain[0]) > 130)
    : scale.ticks(Math.max(2, Math.min(7, Math.floor(space / 55)))), scale);
  const spots = [];
  const named = [];
  const medians = [];
  const names = [];
  let top = 0;
  for (const row of rows) {
    if (layout.above) {
      top += 16;
    }
    const middle = top + SWARM_BAND / 2;
    names.push({ label: row.label, y: layout.above ? top - 9 : middle });
    medians.push({ ...row, top, bottom: top + SWARM_BAND, middle });
    row.dots.filter((dot) => !dot.named).forEach((dot, index) => {
      // Fractions of the golden ratio fill a band evenly, however many there are.
      const shift = ((index * 0.618034) % 1) - 0.5;
      spots.push({ ...dot, y: middle + shift * (SWARM_BAND - 6) });
    });
    const those = lanesOf(row.dots.filter((dot) => dot.named), scale, width - 4);
    const lanes = those.length ? d3.max(those, (dot) => dot.lane) + 1 : 0;
    named.push(...those.map((dot) => ({ ...dot, y: top + SWARM_BAND + 10 + dot.lane * NAMED_LINE })));
    top += SWARM_BAND + (lanes ? lanes * NAMED_LINE + 8 : 0) + ROW_GAP;
  }
  const total = top - ROW_GAP + 6;
  const colour = (dot) => dotColours[dot.named];
  const texts = (those, textAnchor, dx) => those.length
    ? Plot.text(those, { x: "value", y: "y", text: "label", textAnchor, dx, fill: "var(--ink)", ...halo })
    : null;
  const svg = plot({
    width,
    height: total + 60,
    marginLeft: layout.left,
    marginRight,
    marginTop: 8,
    marginBottom: 44,
    x: { type: chart.log ? "log" : "linear", domain, axis: null },
    y: { domain: [total, -8], axis: null },
    symbol: { type: "identity" },
    marks: [
      Plot.gridX(ticks),
      rateAxis(ticks, chart.unit, chart.log),
      Plot.text(names, {
        y: "y", text: "label", frameAnchor: "left", textAnchor: layout.above ? "start" : "end", dx: layout.above ? 0 : -10,
        fill: "var(--ink)",
      }),
      Plot.rect(medians, { x1: "low", x2: "high", y1: "top", y2: "bottom", fill: accent, fillOpacity: 0.2 }),
      Plot.dot(spots, { x: "value", y: "y", r: 2.2, fill: accent, fillOpacity: 0.55, title: "label", className: COUNTED }),
      Plot.ruleX(medians, { x: "value", y1: "top", y2: "bottom", stroke: "var(--ink)", strokeWidth: 1.5 }),
      named.length
        ? Plot.dot(named, {
            x: "value", y: "y", r: 4, symbol: (dot) => dotSymbols[dot.named], stroke: colour, strokeWidth: 2, className: COUNTED,
          })
        : null,
      texts(named.filter((dot) => !dot.leftward), "start", 9),
      texts(named.filter((dot) => dot.leftward), "end", -9),
    ],
  });
  const kinds = [["worse", "slower", d3.symbolTimes], ["better", "faster", d3.symbolTriangle]];
  const used = kinds.filter(([kind]) => named.some((dot) => dot.named === kind));
  return used.length ? withStrokedKeys(used, svg) : svg;
}

// Keys whose signs are lines: a cross has no inside.
function withStrokedKeys(kinds, svg) {
  const box = withKeys(kinds.map(([kind, name, symbol]) => ({ name, colour: dotColours[kind], symbol })), svg);
  box.querySelectorAll(".keys path").forEach((path, index) => {
    path.setAttribute("stroke", dotColours[kinds[index][0]]);
    path.setAttribute("stroke-width", 2);
    path.setAttribute("fill", "none");
  });
  return box;
}
