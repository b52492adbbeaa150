// Draws the charts from the document in #charts, and again when the page's width changes.
//
// Each chart's element gets data-drawn, the number of marks found in its SVG, beside data-expected,
// the number that its data asks for. The root element's data-report ends as "drawn" or "failed".

(() => {
  const root = document.documentElement;
  const drawings = {
    rates: drawRates,
    lines: drawLines,
    clients: drawClients,
    latency: drawLatency,
    costs: drawCosts,
    knob: drawKnob,
    sizes: drawSizes,
    phases: drawPhases,
    "break-even": drawBreakEven,
    timeline: drawTimeline,
    safety: drawSafety,
    dots: drawDots,
  };

  function fail(error) {
    root.dataset.report = "failed";
    root.dataset.error = String(error?.message ?? error);
    const place = document.getElementById("failure");
    place.hidden = false;
    place.textContent = `The charts could not be drawn (${root.dataset.error}). Their figures are in the data tables.`;
  }

  function overhang(place) {
    const around = place.getBoundingClientRect();
    return d3.max(place.querySelectorAll(`svg text, .${COUNTED} > *`), (drawn) => {
      const { left, right } = drawn.getBoundingClientRect();
      return Math.max(0, around.left - left - HALO, right - around.right - HALO);
    });
  }

  function drawAll(charts) {
    for (const chart of charts) {
      const place = document.getElementById(chart.id);
      place.replaceChildren(drawings[chart.kind](chart, Math.floor(place.clientWidth)));
      place.dataset.drawn = place.querySelectorAll(`.${COUNTED} > *`).length;
    }
    // Pixels by which the page is wider than the window; tables scroll in boxes of their own.
    root.dataset.excess = Math.max(0, root.scrollWidth - root.clientWidth);
    // Pixels by which a text or a mark sticks out of its chart; the box of a text holds its halo.
    root.dataset.overhang = Math.ceil(d3.max(charts, (chart) => overhang(document.getElementById(chart.id))) ?? 0);
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

  // A fold that holds the target of a link opens, and so do those around it.
  function reveal() {
    const target = location.hash ? document.getElementById(decodeURIComponent(location.hash.slice(1))) : null;
    if (!target) {
      return;
    }
    let fold = target.closest("details");
    if (!fold) {
      return;
    }
    for (; fold; fold = fold.parentElement.closest("details")) {
      fold.open = true;
    }
    target.scrollIntoView();
  }
  addEventListener("hashchange", reveal);
  // The same link again changes no address.
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link?.hash === location.hash) {
      reveal();
    }
  });
  reveal();

  // On paper nothing can be opened; browsers without ::details-content print closed details as closed.
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open]):not(.licences)")];
    opened.forEach((details) => { details.open = true; });
  });
  addEventListener("afterprint", () => {
    opened.forEach((details) => { details.open = false; });
  });
})();
