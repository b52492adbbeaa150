// Dump against log: where their costs meet.

// By the index of the log, the laxest first.
const policyColours = ["var(--doubt)", "var(--good)", "var(--second)", accent, "var(--faint)"];
const policySymbols = ["diamond", "triangle", "square", "circle", "star"];
const policyShapes = [d3.symbolDiamond, d3.symbolTriangle, d3.symbolSquare, d3.symbolCircle, d3.symbolStar];
const policyColour = (log) => policyColours[log.policy];

const shareFormat = (share) => `${+(share * 100).toPrecision(3)}%`;
const secondsFormat = (seconds) =>
  seconds >= 1 ? `${+seconds.toPrecision(3)} s`
  : seconds >= 1e-3 ? `${+(seconds * 1e3).toPrecision(3)} ms`
  : `${+(seconds * 1e6).toPrecision(3)} µs`;
const bytesFormat = (bytes) => {
  const power = Math.max(0, Math.min(4, Math.floor(Math.log2(bytes) / 10)));
  return `${+(bytes / 2 ** (10 * power)).toPrecision(3)} ${["B", "KiB", "MiB", "GiB", "TiB"][power]}`;
};
const powersOfSixteen = (low, high) =>
  d3.range(Math.ceil(Math.log2(low) / 4), Math.floor(Math.log2(high) / 4) + 1).map((power) => 16 ** power);

function drawBreakEven(chart, width) {
  const { dump, costs, shares } = chart;
  const seconds = chart.unit === "seconds";
  const lines = chart.logs
    .filter((log) => log.ends !== null)
    .map((log) => ({ ...log, x1: log.ends[0][0], y1: log.ends[0][1], x2: log.ends[1][0], y2: log.ends[1][1] }));
  const meetings = chart.logs
    .filter((log) => log.meets !== null)
    .map((log) => ({ ...log, ...log.meets, y: dump.value }))
    .sort((a, b) => a.share - b.share);
  // Labels hang from their crossings, the leftmost lowest, so that none lies across another's thread.
  const drop = (index) => 20 + 16 * (meetings.length - 1 - index);
  const roomy = width >= NARROW;
  const ticks = powersOfTen(...shares).filter((_, index) => roomy || index % 2 === 0);
  const left = 62;
  const right = 20;
  const across = d3.scaleLog(shares, [left, width - right]);
  // The dump's name stands on its line, or with the keys where the first crossing leaves it no room.
  const named = !meetings.length || across(meetings[0].low) > left + textWidth(dump.text) * 1.1 + 24;
  const svg = plot({
    width,
    height: Math.min(360, Math.max(300, width * 0.42)),
    marginLeft: left,
    marginTop: 12,
    marginRight: right,
    marginBottom: 44,
    x: { type: "log", domain: shares, axis: null },
    y: { type: "log", domain: costs, axis: null },
    symbol: { type: "identity" },
    r: { type: "identity" },
    marks: [
      Plot.gridX(ticks),
      Plot.gridY(seconds ? powersOfTen(...costs) : powersOfSixteen(...costs)),
      Plot.axisX(ticks, { text: shareFormat, label: roomy ? "share of the state that changes between two saves (logarithmic)" : "share of the state that changes", labelAnchor: "center", labelArrow: "none" }),
      Plot.axisY(seconds ? powersOfTen(...costs) : powersOfSixteen(...costs), { text: seconds ? secondsFormat : bytesFormat, label: null }),
      Plot.rect([dump], { y1: "low", y2: "high", fill: "var(--ink)", fillOpacity: 0.15 }),
      Plot.link(lines, { x1: "x1", y1: "y1", x2: "x2", y2: "y2", stroke: policyColour, strokeWidth: 2, className: COUNTED }),
      Plot.ruleY([dump], { y: "value", stroke: "var(--ink)", strokeWidth: 2, className: COUNTED }),
      ...meetings.map((meeting, index) =>
        Plot.vector([meeting], {
          x: "share", y: "y", length: drop(index) - 4, rotate: 180, anchor: "start", shape: { draw: (context, l) => { context.moveTo(0, 0); context.lineTo(0, -l); } },
          stroke: policyColour, strokeWidth: 1, strokeDasharray: "2 2",
        })),
      Plot.ruleY(meetings, { x1: "low", x2: "high", y: "y", stroke: policyColour, strokeWidth: 7, strokeOpacity: 0.4 }),
      Plot.dot(meetings, {
        // The laxest first and largest, so that those at one place are all seen.
        x: "share", y: "y", r: (log) => 7.5 - log.policy, sort: "policy", fill: policyColour, stroke: "var(--page)", strokeWidth: 1,
        symbol: (log) => policySymbols[log.policy], className: COUNTED,
      }),
      ...meetings.map((meeting, index) =>
        Plot.text([meeting], { x: "share", y: "y", dy: drop(index), text: "text", textAnchor: "start", dx: -4, fill: policyColour, fontWeight: 600, ...halo })),
      Plot.text(named ? [dump] : [], { y: "value", text: "text", frameAnchor: "left", textAnchor: "start", dx: 6, dy: -11, fontWeight: 600, fill: "var(--ink)", ...halo }),
    ],
  });
  const keys = chart.logs.map((log) => ({
    name: `log, ${log.name}: ${log.text}`,
    colour: policyColours[log.policy],
    symbol: policyShapes[log.policy],
  }));
  const unit = seconds ? "seconds that the program spends, logarithmic" : "bytes written, logarithmic";
  return withKeys(keys, svg, named ? unit : `level line: ${dump.text}; ${unit}`);
}
