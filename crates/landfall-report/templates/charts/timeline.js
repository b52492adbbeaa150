// What happened around a power cut: a lane for each kind of event, a place for each event.
//
// Where the page is wide the events stand from left to right. Where it is narrow they stand from the
// top down, each with its words beside it.

const LANE = 38;
const MOST_LABELS = 8;
const bad = "var(--bad)";

// Of texts in one line those that do not touch the one before.
function roomy(items, position, text) {
  let end = -Infinity;
  return items.filter((item) => {
    const half = textWidth(text(item)) / 2 + 3;
    const free = position(item) - half >= end;
    end = free ? position(item) + half : end;
    return free;
  });
}

const isBroken = (event) => event.kind === "write" && !event.after && event.arrived < 1;

// A write as the keys show it, with the part of it that arrived filled.
function writeKey(name, arrived, crossed, faint) {
  const key = document.createElement("span");
  const sign = d3.create("svg").attr("width", 14).attr("height", 12);
  const colour = faint ? "var(--faint)" : crossed || arrived < 1 ? bad : accent;
  sign.append("rect").attr("x", 1).attr("y", 1).attr("width", 12 * arrived).attr("height", 10).attr("fill", accent);
  sign.append("rect").attr("x", 1).attr("y", 1).attr("width", 12).attr("height", 10).attr("fill", "none")
    .attr("stroke", colour).attr("stroke-width", 1.5).attr("stroke-dasharray", faint ? "2 2" : null);
  if (crossed) {
    sign.append("path").attr("d", "M1,1L13,11M13,1L1,11").attr("stroke", bad).attr("stroke-width", 1.5);
  }
  key.append(sign.node(), name);
  return key;
}

function timelineKeys(writes) {
  const keys = document.createElement("p");
  keys.className = "keys";
  const some = (test) => writes.some(test);
  const kinds = [
    ["write that arrived", 1, false, false, some((write) => !write.after && write.arrived === 1)],
    ["torn: the filled part arrived", 0.5, false, false, some((write) => !write.after && write.arrived > 0 && write.arrived < 1)],
    ["missing", 0, true, false, some((write) => !write.after && write.arrived === 0)],
    ["after the power cut", 0, false, true, some((write) => write.after)],
  ];
  keys.append(...kinds.filter((kind) => kind[4]).map((kind) => writeKey(...kind)));
  return keys;
}

function drawTimeline(chart, width) {
  const down = width < NARROW;
  const { lanes, events, cut, since } = chart;
  const of = (...kinds) => events.filter((event) => kinds.includes(event.kind));
  const writes = of("write");
  const flushes = of("flush", "lying-flush");
  const places = events.length + 1;
  const margin = down ? 8 : widest(lanes) + 16;
  const step = down ? 21 : (width - margin - 16) / places;
  const reach = Math.min(0.42, down ? 0.36 : 9 / step);
  // Channels along the order of events and across the lanes.
  const along = (place, lane) => (down ? { x: lane, y: place } : { x: place, y: lane });
  const span = (from, to) => (down ? { y1: from, y2: to, x: "lane" } : { x1: from, x2: to, y: "lane" });
  const bar = down ? Plot.barY : Plot.barX;
  const rule = down ? Plot.ruleY : Plot.ruleX;
  const faded = (event) => (event.after ? 0.4 : 1);
  const colour = (write) => (write.after ? "var(--faint)" : isBroken(write) ? bad : accent);
  const from = (event) => event.at - reach;
  const gone = writes.filter((write) => !write.after && write.arrived === 0);
  const across = down ? "x" : "y";
  const order = {
    type: "linear",
    domain: down ? [places - 0.3, -0.7] : [-0.7, places - 0.3],
    axis: null,
  };
  const stack = { type: "band", domain: d3.range(lanes.length), padding: 0.42, axis: null };
  // Labels of each lane, as many as fit; where much is missing, the keys say so.
  const broken = writes.filter(isBroken).length;
  const labelled = events.filter((event) => event.label && (event.kind !== "write" || broken <= MOST_LABELS));
  const labels = d3.range(down ? 0 : lanes.length).flatMap((lane) =>
    roomy(labelled.filter((event) => event.lane === lane), (event) => event.at * step, (event) => event.label));
  const room = (places - cut) * step;
  const anchorOfCut = room < 36 ? { textAnchor: "end", dx: 6 } : { textAnchor: "middle" };
  const svg = plot({
    width,
    height: down ? places * step + 12 : lanes.length * LANE + 40,
    marginLeft: margin,
    marginRight: down ? width - margin - lanes.length * 17 : 16,
    marginTop: down ? 6 : 26,
    marginBottom: down ? 6 : 14,
    [down ? "y" : "x"]: order,
    [across]: stack,
    marks: [
      since < cut
        ? (down
          ? Plot.rect([0], { y1: since - 0.5, y2: cut, fill: "var(--raised)", stroke: "none" })
          : Plot.rect([0], { x1: since - 0.5, x2: cut, fill: "var(--raised)", stroke: "none" }))
        : null,
      // A lane for each kind, and its name.
      down
        ? Plot.ruleX(d3.range(lanes.length), { stroke: "var(--line)" })
        : Plot.ruleY(d3.range(lanes.length), { stroke: "var(--line)" }),
      down
        ? null
        : Plot.text(lanes, { y: (_, lane) => lane, text: (name) => name, frameAnchor: "left", textAnchor: "end", dx: -10 }),
      rule(flushes, {
        [down ? "y" : "x"]: "at", stroke: "var(--ink)", strokeOpacity: (flush) => 0.55 * faded(flush), strokeWidth: 1,
      }),
      bar(writes.filter((write) => write.arrived > 0), {
        ...span(from, (write) => write.at - reach + 2 * reach * write.arrived), fill: accent,
      }),
      ...[false, true].map((after) =>
        bar(writes.filter((write) => write.after === after), {
          ...span(from, (write) => write.at + reach), fill: "transparent", stroke: colour, strokeWidth: 1.5,
          strokeDasharray: after ? "2 2" : null, title: "title", className: COUNTED,
        })),
      Plot.dot(gone, {
        ...along("at", "lane"), symbol: "times", r: down ? 4 : Math.min(6, step * reach), stroke: bad, strokeWidth: 1.75,
      }),
      Plot.dot(of("send"), {
        ...along("at", "lane"), r: 4, fill: "var(--page)", stroke: "var(--ink)", strokeWidth: 1.5, strokeOpacity: faded, title: "title", className: COUNTED,
      }),
      Plot.dot(of("acknowledge"), {
        ...along("at", "lane"), r: 4.5, fill: "var(--ink)", fillOpacity: faded, title: "title", className: COUNTED,
      }),
      Plot.dot(of("flush"), {
        ...along("at", "lane"), symbol: "diamond", r: 4.5, fill: "var(--ink)", fillOpacity: faded, title: "title", className: COUNTED,
      }),
      Plot.dot(of("lying-flush"), {
        ...along("at", "lane"), symbol: "diamond", r: 4.5, fill: "var(--page)", stroke: bad, strokeWidth: 1.5, title: "title", className: COUNTED,
      }),
      Plot.dot(of("refused"), {
        ...along("at", "lane"), symbol: "times", r: 4.5, stroke: bad, strokeWidth: 2, title: "title", className: COUNTED,
      }),
      rule([cut], { stroke: bad, strokeWidth: 3.5, className: COUNTED }),
      down
        ? Plot.text(events, {
          y: "at", text: "words", frameAnchor: "right", textAnchor: "start", dx: 12,
          fill: (event) => (event.after ? "var(--faint)" : isBroken(event) ? bad : "var(--ink)"),
        })
        : null,
      ...[false, true].map((write) =>
        Plot.text(labels.filter((event) => (event.kind === "write") === write), {
          x: "at", y: "lane", text: "label", dy: write ? -17 : -13,
          fill: (event) => (event.kind === "send" || event.kind === "acknowledge" ? "var(--ink)" : bad),
          fillOpacity: faded, ...halo,
        })),
      down
        ? Plot.text([cut], { y: cut, text: () => "power cut", frameAnchor: "right", textAnchor: "start", dx: 12, fill: bad, fontWeight: 700, ...halo })
        : Plot.text([cut], { x: cut, text: () => "power cut", frameAnchor: "top", dy: -14, ...anchorOfCut, fill: bad, fontWeight: 700 }),
    ],
  });
  const box = document.createElement("div");
  box.append(timelineKeys(writes), svg);
  return box;
}
