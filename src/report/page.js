// Draws one chart per <canvas data-chart> from the JSON in the page, and its key beside it.
// Colours come from page.css, so that dark, light and print are decided in one place.
(() => {
  // Filled ones, because a recommended point keeps its colour inside an outline. 180 degrees
  // stand a triangle on its tip. Five, so that colour and shape repeat together only after 40.
  const kShapes = [["circle", 0], ["rect", 0], ["triangle", 0], ["rectRot", 0], ["triangle", 180]];
  const kDashes = [[], [9, 4], [5, 2, 1, 2]]; // for the second and third round of colours
  const kStruckDash = [2, 4];
  const kColours = 8;
  const kPrinted = [680, 310]; // CSS pixels: the width of A4 between margins

  const page = document.documentElement;
  const specs = JSON.parse(document.getElementById("charts").textContent);
  const views = [];
  const places = new Map(); // name of a line -> its place in the palette, in every chart the same
  for (const { name } of specs.flatMap((spec) => spec.lines)) {
    if (!places.has(name)) places.set(name, places.size);
  }

  function readTheme() {
    const style = getComputedStyle(page);
    const colour = (name) => style.getPropertyValue(name).trim();
    const series = [...Array(kColours).keys()].map((i) => colour(`--series-${i + 1}`));
    return {
      series,
      ink: colour("--ink"),
      soft: colour("--soft"),
      line: colour("--line"),
      card: colour("--card"),
      guide: colour("--guide"),
    };
  }

  const number = (value) =>
    Number(value).toLocaleString("en", { maximumSignificantDigits: 5 });

  function lookOf(line, theme, dimmed) {
    const place = places.get(line.name);
    const struck = line.emphasis === "struck";
    const alpha = dimmed ? "26" : struck || line.emphasis === "faint" ? "80" : "";
    const round = Math.floor(place / kColours) % kDashes.length;
    const [shape, rotation] = kShapes[place % kShapes.length];
    return {
      colour: theme.series[place % kColours] + alpha,
      dash: struck ? kStruckDash : kDashes[round],
      shape,
      rotation,
    };
  }

  // What changes with the theme, the width and the highlighted line; the data do not.
  function styleOf(line, theme, { dimmed, narrow }) {
    const { colour, dash, shape, rotation } = lookOf(line, theme, dimmed);
    const plain = line.joined ? (narrow ? 1.6 : 2.5) : narrow ? 3 : 4;
    const marked = narrow ? 5 : 6.5;
    const each = (yes, no) => line.points.map((point) => (point.marked ? yes : no));
    return {
      borderColor: colour,
      backgroundColor: colour,
      borderDash: dash,
      borderWidth: narrow ? 1.4 : 1.8,
      pointStyle: shape,
      pointRotation: rotation,
      pointRadius: each(marked, plain),
      pointHoverRadius: each(marked + 2, plain + 3),
      pointBorderColor: each(dimmed ? colour : theme.ink, colour),
      pointBorderWidth: each(1.8, 1.4),
      pointHitRadius: 6,
    };
  }

  function datasetOf(line) {
    return { label: line.name, data: line.points, showLine: line.joined, clip: 8 };
  }

  // 1, 2 and 5 of each power of ten that `low` to `high` needs; Chart.js would go on to whole
  // powers and leave half of the picture empty.
  function logarithmicTicks(low, high) {
    const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const steps = last - first > 4 ? [1] : [1, 2, 5];
    const all = [];
    for (let power = first; power <= last; ++power) {
      all.push(...steps.map((step) => Number(`${step}e${power}`)));
    }
    const from = all.filter((tick) => tick <= low).pop();
    const to = all.find((tick) => tick >= high);
    return all.filter((tick) => tick >= from && tick <= to);
  }

  // A logarithmic axis cannot show zero, so a chart that has one gets a linear axis.
  function axisOf({ title, logarithmic }, values, theme) {
    const usable = values.filter(Number.isFinite);
    const [low, high] = [Math.min(...usable), Math.max(...usable)];
    const axis = {
      title: { display: title !== "", text: title, color: theme.ink },
      border: { color: theme.line },
      grid: { color: theme.line, borderColor: theme.line },
      ticks: { color: theme.soft, maxRotation: 0, autoSkipPadding: 14 },
    };
    if (!logarithmic || !usable.length || low <= 0) {
      const afterDataLimits = (scale) => {
        // 100.00000000000001 % must not make the axis go on to 110 %.
        scale.min = Number(Math.min(scale.min, low).toPrecision(12));
        scale.max = Number(Math.max(scale.max, high).toPrecision(12));
      };
      return usable.length ? { ...axis, type: "linear", afterDataLimits } : axis;
    }
    const ticks = logarithmicTicks(low, high);
    const afterBuildTicks = (scale) => {
      scale.ticks = ticks.map((value) => ({ value }));
    };
    axis.ticks.callback = (value) => number(value);
    return { ...axis, type: "logarithmic", min: ticks[0], max: ticks.at(-1), afterBuildTicks };
  }

  function tooltipOf(spec, theme) {
    const body = ({ raw }) => {
      const interval =
        raw.low === undefined && raw.high === undefined
          ? ""
          : ` (${number(raw.low ?? raw.y)} to ${number(raw.high ?? raw.y)})`;
      const lines = [
        `${spec.x.title}: ${number(raw.x)}`,
        `${spec.y.title}: ${number(raw.y)}${interval}`,
      ];
      if (raw.marked) lines.push("recommended");
      return raw.label ? [...lines, raw.label] : lines;
    };
    const title = ([item]) => {
      const struck = item && spec.lines[item.datasetIndex].emphasis === "struck";
      return item ? item.dataset.label + (struck ? ": struck out, must not be used" : "") : "";
    };
    return {
      backgroundColor: theme.ink,
      titleColor: theme.card,
      bodyColor: theme.card,
      padding: 10,
      cornerRadius: 6,
      displayColors: false,
      callbacks: { title, label: body },
    };
  }

  function optionsOf(spec, theme) {
    const points = spec.lines.flatMap((line) => line.points);
    const heights = points.flatMap((point) => [point.y, point.low, point.high]);
    return {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      devicePixelRatio: Math.max(2, window.devicePixelRatio), // sharp in print, too
      locale: "en",
      interaction: { mode: "nearest", intersect: false },
      layout: { padding: { top: 8, right: 8 } },
      scales: {
        x: axisOf(spec.x, points.map((point) => point.x), theme),
        y: axisOf(spec.y, [...heights, ...spec.guides], theme),
      },
      plugins: {
        legend: { display: false }, // ours is HTML: it wraps, and can strike a name
        tooltip: tooltipOf(spec, theme),
        guides: { values: spec.guides, line: theme.guide, text: theme.soft, halo: theme.card },
      },
    };
  }

  // Thin horizontal lines with their values, for shares to be read against.
  const guides = {
    id: "guides",
    beforeDatasetsDraw({ ctx, chartArea: area, scales }, _, { values, line }) {
      ctx.save();
      ctx.strokeStyle = line;
      ctx.setLineDash([1, 3]);
      for (const value of values ?? []) {
        const y = scales.y.getPixelForValue(value);
        ctx.beginPath();
        ctx.moveTo(area.left, y);
        ctx.lineTo(area.right, y);
        ctx.stroke();
      }
      ctx.restore();
    },
    afterDatasetsDraw({ ctx, chartArea: area, scales }, _, { values, text, halo }) {
      ctx.save();
      ctx.font = `11px ${Chart.defaults.font.family}`;
      ctx.lineWidth = 3;
      ctx.strokeStyle = halo;
      ctx.fillStyle = text;
      for (const value of values ?? []) {
        const y = scales.y.getPixelForValue(value) - 3;
        ctx.strokeText(number(value), area.left + 5, y);
        ctx.fillText(number(value), area.left + 5, y);
      }
      ctx.restore();
    },
  };

  function paintSwatch(canvas, look) {
    const scale = 2;
    const [width, height] = [30, 14];
    canvas.width = width * scale;
    canvas.height = height * scale;
    const ctx = canvas.getContext("2d");
    ctx.scale(scale, scale);
    ctx.strokeStyle = ctx.fillStyle = look.colour;
    ctx.lineWidth = 1.8;
    if (look.joined) {
      ctx.setLineDash(look.dash);
      ctx.beginPath();
      ctx.moveTo(1, height / 2);
      ctx.lineTo(width - 1, height / 2);
      ctx.stroke();
    }
    ctx.setLineDash([]);
    const point = { pointStyle: look.shape, rotation: look.rotation, radius: 4, borderWidth: 1.4 };
    Chart.helpers.drawPoint(ctx, point, width / 2, height / 2);
  }

  function paint(view, theme) {
    const { chart, spec, keys } = view;
    spec.lines.forEach((line, i) => {
      const dimmed = view.focus !== undefined && view.focus !== i;
      const narrow = chart.canvas.parentNode.clientWidth < 480; // chart.width lags behind
      Object.assign(chart.data.datasets[i], styleOf(line, theme, { dimmed, narrow }));
      paintSwatch(keys[i].firstChild, { ...lookOf(line, theme, false), joined: line.joined });
    });
    chart.options = optionsOf(spec, theme);
    chart.update("none");
  }

  const paintAll = () => {
    const theme = readTheme();
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    views.forEach((view) => paint(view, theme));
  };

  function show(view, visible) {
    view.keys.forEach((key, i) => {
      view.chart.setDatasetVisibility(i, visible[i]);
      key.setAttribute("aria-pressed", String(visible[i]));
    });
    view.chart.update("none");
  }

  // One button of the key: a click hides or shows its line, a double click shows it alone, or
  // all again; hovering dims the others.
  function keyOf(view, line, index) {
    const key = document.createElement("button");
    key.type = "button";
    key.title = "Click: hide or show. Double click: show alone, or all.";
    key.setAttribute("aria-pressed", "true");
    const name = document.createElement(line.emphasis === "struck" ? "s" : "span");
    name.textContent = line.name;
    key.append(document.createElement("canvas"), name);
    const visible = () => view.keys.map((_, i) => view.chart.isDatasetVisible(i));
    const highlight = (focus) => {
      view.focus = focus;
      paint(view, readTheme());
    };
    key.addEventListener("click", () =>
      show(view, visible().map((on, i) => (i === index ? !on : on))));
    key.addEventListener("dblclick", () => {
      const alone = visible().every((on, i) => on === (i === index));
      show(view, view.keys.map((_, i) => alone || i === index));
    });
    key.addEventListener("pointerenter", ({ pointerType }) => {
      if (pointerType === "mouse") highlight(index);
    });
    key.addEventListener("pointerleave", () => highlight(undefined));
    return key;
  }

  function build(canvas, theme) {
    const spec = specs[Number(canvas.dataset.chart)];
    const chart = new Chart(canvas, {
      type: "line",
      data: { datasets: spec.lines.map(datasetOf) },
      options: optionsOf(spec, theme),
      plugins: [errorBars, guides],
    });
    const view = { chart, spec };
    view.keys = spec.lines.map((line, i) => keyOf(view, line, i));
    canvas.closest("figure").querySelector(".key").append(...view.keys);
    views.push(view);
  }

  document.querySelectorAll("canvas[data-chart]").forEach((canvas) => build(canvas, readTheme()));
  paintAll();

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paintAll);
  addEventListener("resize", paintAll);
  // Paper is white and narrow, whatever the screen is.
  addEventListener("beforeprint", () => {
    page.classList.add("printing");
    views.forEach(({ chart }) => chart.resize(...kPrinted));
    paintAll();
  });
  addEventListener("afterprint", () => {
    page.classList.remove("printing");
    views.forEach(({ chart }) => chart.resize());
    paintAll();
  });
})();
