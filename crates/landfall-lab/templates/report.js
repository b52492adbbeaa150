// Draws the charts from the document in #charts, and again when the page's width changes.
//
// Each chart's element gets data-drawn, the number of marks found in its SVG, beside data-expected,
// the number that its data asks for. The root element's data-report ends as "drawn" or "failed".
"use strict";

(() => {
  const root = document.documentElement;
  const NARROW = 560;
  const accent = "var(--accent)";
  const seriesColours = [accent, "var(--second)"];
  const seriesSymbols = ["circle", "square"];
  // Class of the groups whose marks are counted.
  const COUNTED = "counted";

  const rateFormat = (value) =>
    value >= 1e6 ? `${+(value / 1e6).toPrecision(3)}M`
    : value >= 1e3 ? `${+(value / 1e3).toPrecision(3)}k`
    : `${+value.toPrecision(3)}`;

  const ruler = document.createElement("canvas").getContext("2d");
  const textWidth = (text) => {
    ruler.font = "12px system-ui, sans-serif";
    return ruler.measureText(text).width;
  };
  const widest = (texts) => Math.ceil(Math.max(0, ...texts.map(textWidth)));

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

  // Labels stand left of the rows, or above them where they would take too much of the width.
  function rowLayout(labels, width) {
    const wide = widest(labels);
    const above = wide > width * 0.42;
    return { above, left: above ? 4 : wide + 14, step: above ? 40 : 26 };
  }

  function rowLabels(layout, rows) {
    return layout.above
      ? Plot.text(rows, { y: "label", text: "label", frameAnchor: "left", textAnchor: "start", dy: -15 })
      : Plot.axisY({ tickSize: 0, label: null, tickPadding: 8 });
  }

  function drawRates(chart, width) {
    const { rows } = chart;
    const measured = rows.filter((row) => row.value !== null);
    const missing = rows.filter((row) => row.value === null);
    // Where nothing is durable the heading says so, and each row need not.
    const mixed = measured.some((row) => row.durable);
    const note = (row) => (row.durable || !mixed ? row.text : `${row.text}, not durable`);
    const layout = rowLayout(rows.map((row) => row.label), width);
    const most = d3.max(measured, (row) => row.high) || 1;
    const least = d3.min(measured, (row) => row.low);
    const domain = chart.log ? [least * 0.8, most * 1.05] : [0, most * 1.01];
    const position = (chart.log ? d3.scaleLog() : d3.scaleLinear()).domain(domain);
    // A text stands right of its interval, or left of it where the right has no room.
    const leftward = (row) => chart.log && position(row.low) > 0.55;
    const room = width - layout.left;
    const overhang = (row) => {
      const text = textWidth(note(row)) + 18;
      return leftward(row) ? 0 : room - (room - text) / Math.max(position(row.high), 0.01);
    };
    const marginRight = Math.max(18, ...measured.map(overhang));
    const space = room - marginRight;
    const ticks = chart.log
      ? logTicks(...domain, space / Math.log10(domain[1] / domain[0]) > 130)
      : position.ticks(Math.max(2, Math.min(7, Math.floor(space / 55))));
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
        Plot.axisX(ticks, {
          // As the text itself, because a logarithmic scale drops labels that it finds crowded.
          text: rateFormat,
          label: chart.log ? "operations per second (logarithmic)" : "operations per second",
          labelAnchor: "center",
          labelArrow: "none",
        }),
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
    const keys = document.createElement("p");
    keys.className = "keys";
    for (const index of used) {
      const key = document.createElement("span");
      const sign = d3.create("svg").attr("width", 12).attr("height", 12);
      sign.append("path")
        .attr("transform", "translate(6,6)")
        .attr("fill", seriesColours[index])
        .attr("d", d3.symbol(index ? d3.symbolSquare : d3.symbolCircle, 64)());
      key.append(sign.node(), series[index]);
      keys.append(key);
    }
    const box = document.createElement("div");
    box.append(keys, svg);
    return box;
  }

  // The hundredth percentile is at infinity; it gets a place of its own at the end.
  const LAST = 4.7;
  const stretch = (percentile) => (percentile >= 100 ? LAST : -Math.log10(1 - percentile / 100));

  function drawLatency(chart, width) {
    const columns = Math.max(2, Math.min(5, Math.floor(width / 165)));
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
      text: curve.durable ? curve.label : `${curve.label} *`,
      column: index % columns,
      row: Math.floor(index / columns),
    }));
    const inFacet = { fx: "column", fy: "row" };
    return plot({
      width,
      height: rows * 150 + 46,
      marginLeft: 48,
      marginRight: 10,
      marginTop: 22,
      marginBottom: 40,
      fx: { axis: null, padding: 0.12 },
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
        Plot.text(titles, { ...inFacet, text: "text", frameAnchor: "top-left", dy: -15, fontWeight: 600 }),
      ],
    });
  }

  function drawCosts(chart, width) {
    const narrow = width < NARROW;
    const labels = chart.panels[0].bars.map((bar) => bar.label);
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
          labelled ? rowLabels(layout, panel.bars) : null,
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
      const title = document.createElement("p");
      title.className = "panel-title";
      title.style.paddingLeft = `${left}px`;
      title.textContent = panel.name;
      part.append(title, svg);
      box.append(part);
    });
    return box;
  }

  const drawings = { rates: drawRates, lines: drawLines, latency: drawLatency, costs: drawCosts };

  function fail(error) {
    root.dataset.report = "failed";
    root.dataset.error = String(error?.message ?? error);
    const place = document.getElementById("failure");
    place.hidden = false;
    place.textContent = `The charts could not be drawn (${root.dataset.error}). Their figures are in the data tables.`;
  }

  function drawAll(charts) {
    for (const chart of charts) {
      const place = document.getElementById(chart.id);
      place.replaceChildren(drawings[chart.kind](chart, Math.floor(place.clientWidth)));
      place.dataset.drawn = place.querySelectorAll(`.${COUNTED} > *`).length;
    }
    // Pixels by which the page is wider than the window; tables scroll in boxes of their own.
    root.dataset.excess = Math.max(0, root.scrollWidth - root.clientWidth);
    root.dataset.report = "drawn";
  }

  try {
    const charts = JSON.parse(document.getElementById("charts").textContent);
    const main = document.querySelector("main");
    let width = 0;
    const draw = () => {
      if (main.clientWidth !== width) {
        width = main.clientWidth;
        drawAll(charts);
      }
    };
    draw();
    new ResizeObserver(() => {
      try {
        draw();
      } catch (error) {
        fail(error);
      }
    }).observe(main);
  } catch (error) {
    fail(error);
  }

  // Browsers without ::details-content print closed details as closed.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("figure details:not([open])")];
    opened.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => {
    opened.forEach((details) => { details.open = false; });
  });
})();
