"""chromium_test.py PAGE.html EXPECTED.json [--shots FOLDER] [--seconds N]

Opens a report in headless Chromium and checks that it shows what it was given and needs
nothing else: the figures in the charts, the pictures, the requests, the console, a narrow
screen, dark, light and paper. EXPECTED.json, written from what went into the report, is
{"charts": [{"id": ..., "lines": [{"name": ..., "struck": false, "points":
[[x, y, low or null, high or null, recommended], ...]}]}]}.
Ends with 0, with 1 and the reasons, or with 77 where there is no Chromium. With --shots it
also leaves its pictures in FOLDER, for people to look at.
"""

import argparse
import base64
import json
import math
import os
import pathlib
import signal
import sys

sys.dont_write_bytecode = True  # tests leave nothing in the source tree
import chromium

SKIPPED = 77

# What each chart holds, as it reads back from Chart.js, and where it put its points.
READ_CHARTS = """
[...document.querySelectorAll("canvas[data-chart]")].map((canvas) => {
  const chart = Chart.getChart(canvas);
  const figure = canvas.closest("figure");
  return {
    id: figure.id,
    label: canvas.getAttribute("aria-label"),
    rows: figure.querySelectorAll("details tbody tr").length,
    keys: [...figure.querySelectorAll(".key button")].map((key) =>
      ({ name: key.textContent, struck: key.querySelector("s") !== null })),
    lines: chart.data.datasets.map((dataset, i) => {
      const { data, xScale, yScale } = chart.getDatasetMeta(i);
      return {
        name: dataset.label,
        dashed: dataset.borderDash.length > 0,
        points: dataset.data.map((p, j) =>
          [p.x, p.y, p.low ?? null, p.high ?? null, p.marked ?? false]),
        drawn: data.map(({ x, y }) => [xScale.getValueForPixel(x), yScale.getValueForPixel(y)]),
        radii: data.map(({ options }) => options.radius),
        ranges: [[xScale.min, xScale.max], [yScale.min, yScale.max]],
      };
    }),
  };
})
"""

# Of the error bars that are long enough to see, how many have ink half way to their end.
COUNT_BARS = """
[...document.querySelectorAll("canvas[data-chart]")].map((canvas) => {
  const chart = Chart.getChart(canvas);
  const scale = chart.currentDevicePixelRatio;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext(
    "2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const ends = chart.data.datasets.flatMap((dataset, i) => {
    const { data, yScale } = chart.getDatasetMeta(i);
    return data.flatMap(({ x, y }, j) =>
      [dataset.data[j].low, dataset.data[j].high].filter((end) => end !== undefined)
        .map((end) => ({ x, y, end: yScale.getPixelForValue(end) })));
  }).filter(({ y, end }) => Math.abs(y - end) > 6 && Number.isFinite(end));
  const inked = ends.filter(({ x, y, end }) => copy.getImageData(
    Math.round(x * scale) - 1, Math.round((y + end) / 2 * scale), 3, 1).data.some((v) => v > 0));
  return [inked.length, ends.length];
})
"""

USE_KEYS = """
[...document.querySelectorAll("canvas[data-chart]")].map((canvas) => {
  const chart = Chart.getChart(canvas);
  const keys = [...canvas.closest("figure").querySelectorAll(".key button")];
  const shown = () => keys.map((key, i) =>
    [chart.isDatasetVisible(i), key.getAttribute("aria-pressed") === "true"]);
  const after = (type) => {
    keys[0]?.dispatchEvent(new MouseEvent(type));
    return shown();
  };
  return [after("click"), after("click"), after("dblclick"), after("dblclick")];
})
"""

WATCH_PRINT = """
addEventListener("beforeprint", () => {
  const canvas = document.querySelector("canvas[data-chart]");
  window.printedInk = Chart.getChart(canvas).options.scales.x.title.color;
})
"""

COUNT_COLOURS = """
[...document.querySelectorAll("canvas")].map((canvas) => {
  const { width, height } = canvas;
  const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
  copy.drawImage(canvas, 0, 0);
  const words = new Uint32Array(copy.getImageData(0, 0, width, height).data.buffer);
  return { colours: new Set(words).size, inked: words.filter((word) => word !== 0).length,
           chart: canvas.dataset.chart !== undefined };
})
"""

CHART_INK = """
Chart.getChart(document.querySelector("canvas[data-chart]")).options.scales.x.title.color
"""

AFTER_PAINT = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"

SCREENS = (
    # name, scheme, width, height, phone
    ("desktop-light", "light", 1280, 900, False),
    ("desktop-dark", "dark", 1280, 900, False),
    ("phone-light", "light", 360, 740, True),
    ("phone-dark", "dark", 360, 740, True),
)


class Checks:
    """Counts what was checked and keeps what was wrong."""

    def __init__(self):
        self.count = 0
        self.wrong = []

    def that(self, condition, reason):
        self.count += 1
        if not condition:
            self.wrong.append(reason)


def close_to(place, value, ends):
    """Whether a point's place in the picture, as a value of its axis, is where it belongs."""
    return abs(place - value) <= 1e-6 * max(abs(value), abs(ends[1] - ends[0]))


def same_figure(shown, expected):
    """Equal, but for the last digits of a double that was worked out on another way."""
    if isinstance(shown, bool) or shown is None or expected is None:
        return shown == expected
    return math.isclose(shown, expected, rel_tol=1e-12)


def same_points(shown, expected):
    return len(shown) == len(expected) and all(
        len(a) == len(b) and all(map(same_figure, a, b)) for a, b in zip(shown, expected))


def check_line(shown, expected, place, checks):
    checks.that(shown["name"] == expected["name"],
                f"{place}: is called {shown['name']!r}, not {expected['name']!r}")
    checks.that(same_points(shown["points"], expected["points"]),
                f"{place}: the figures in the chart differ from those given")
    checks.that(shown["dashed"] or not expected["struck"], f"{place}: struck but not dashed")
    checks.that(len(shown["drawn"]) == len(expected["points"]), f"{place}: points are missing")
    plain = [r for r, p in zip(shown["radii"], expected["points"]) if not p[4]]
    marked = [r for r, p in zip(shown["radii"], expected["points"]) if p[4]]
    checks.that(not plain or not marked or min(marked) > 1.4 * max(plain),
                f"{place}: recommended points do not stand out")
    for drawn, point in zip(shown["drawn"], expected["points"]):
        for axis, name in enumerate("xy"):
            checks.that(close_to(drawn[axis], point[axis], shown["ranges"][axis]),
                        f"{place}: {name} {point[axis]} is drawn at {drawn[axis]}")


def check_figures(page, expected, checks):
    shown = page.evaluate(READ_CHARTS)
    checks.that([chart["id"] for chart in shown] == [chart["id"] for chart in expected["charts"]],
                f"charts on the page: {[chart['id'] for chart in shown]}")
    for chart, wanted in zip(shown, expected["charts"]):
        keys = [(key["name"], key["struck"]) for key in chart["keys"]]
        checks.that(keys == [(line["name"], line["struck"]) for line in wanted["lines"]],
                    f"{chart['id']}: the key shows {keys}")
        checks.that(bool(chart["label"]), f"{chart['id']}: has no text for a screen reader")
        checks.that(chart["rows"] > 0, f"{chart['id']}: has no table of its figures")
        checks.that(len(chart["lines"]) == len(wanted["lines"]), f"{chart['id']}: lines missing")
        for line, line_wanted in zip(chart["lines"], wanted["lines"]):
            check_line(line, line_wanted, f"{chart['id']}, {line['name']}", checks)


def check_keys(page, checks):
    """A click hides and shows a line, a double click shows it alone, then all again."""
    for hidden, shown, alone, everything in page.evaluate(USE_KEYS):
        both = [[True, True]] * (len(shown) - 1)
        neither = [[False, False]] * (len(shown) - 1)
        if not shown:
            continue
        checks.that(hidden == [[False, False]] + both, "key: a click does not hide the line")
        checks.that(shown == [[True, True]] + both, "key: a second click does not show it")
        checks.that(alone == [[True, True]] + neither, "key: a double click does not single out")
        checks.that(everything == [[True, True]] + both, "key: a line stays hidden")


def check_bars(page, checks):
    for found, tested in page.evaluate(COUNT_BARS):
        checks.that(found == tested, f"{tested - found} of {tested} error bars are not drawn")


def check_screen(page, screen, checks):
    """One picture of the page as `screen` shows it, as PNG; checks what it looks like."""
    name, scheme, width, height, phone = screen
    page.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
              deviceScaleFactor=2 if phone else 1, mobile=phone)
    page.call("Emulation.setEmulatedMedia",
              features=[{"name": "prefers-color-scheme", "value": scheme}])
    page.evaluate(AFTER_PAINT)
    across = page.evaluate("document.documentElement.scrollWidth")
    checks.that(across <= width, f"{name}: the page is {across} pixels wide")
    for i, canvas in enumerate(page.evaluate(COUNT_COLOURS)):
        enough = canvas["colours"] >= (8 if canvas["chart"] else 2) and canvas["inked"] > 20
        checks.that(enough, f"{name}: canvas {i} is blank")
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    brightness = sum(map(int, paper.strip("rgb()").split(",")))
    checks.that((brightness < 3 * 128) == (scheme == "dark"), f"{name}: the paper is {paper}")
    ink = page.evaluate(CHART_INK)
    checks.that((int(ink[1:3], 16) > 128) == (scheme == "dark"),
                f"{name}: the charts write in {ink}")
    return page.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]


def check_paper(page, checks):
    """The printed page as PDF, asked for while the screen is dark."""
    page.evaluate(WATCH_PRINT)
    pdf = page.call("Page.printToPDF", preferCSSPageSize=True, printBackground=False)["data"]
    checks.that(base64.b64decode(pdf).startswith(b"%PDF-"), "print: gave no PDF")
    checks.that(len(pdf) > 20_000, "print: the PDF is nearly empty")
    ink = page.evaluate("window.printedInk")
    checks.that(ink is not None and int(ink[1:3], 16) < 128, f"print: charts write in {ink}")
    checks.that(not page.evaluate('document.documentElement.classList.contains("printing")'),
                "print: the page still looks like paper afterwards")
    return pdf


def check_quiet(page, address, checks):
    for event in page.events:
        method, details = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            url = details["request"]["url"]
            checks.that(url in (address, "about:blank") or url.startswith("data:"),
                        f"the page asked for {url}")
        elif method == "Runtime.exceptionThrown":
            thrown = details["exceptionDetails"]
            checks.that(False, f"exception: {thrown.get('exception', thrown).get('description')}")
        elif method == "Runtime.consoleAPICalled":
            checks.that(False, f"console.{details['type']}: {details['args']}")
        elif method == "Log.entryAdded":
            checks.that(False, f"log: {details['entry']['text']}")


def run(arguments, program, checks):
    address = pathlib.Path(arguments.page).resolve().as_uri()
    expected = json.loads(pathlib.Path(arguments.expected).read_text())
    pictures = {}
    with chromium.Chromium(program, arguments.seconds) as page:
        page.call("Page.navigate", url=address)
        page.wait_for("Page.loadEventFired")
        page.evaluate(AFTER_PAINT)
        check_figures(page, expected, checks)
        for screen in SCREENS:
            pictures[screen[0] + ".png"] = check_screen(page, screen, checks)
            check_bars(page, checks)
        check_figures(page, expected, checks)
        check_keys(page, checks)
        pictures["print.pdf"] = check_paper(page, checks)
        check_quiet(page, address, checks)
    if arguments.shots:
        os.makedirs(arguments.shots, exist_ok=True)
        for name, data in pictures.items():
            pathlib.Path(arguments.shots, name).write_bytes(base64.b64decode(data))


def main():
    parser = argparse.ArgumentParser(description="Checks a halfwatt report in Chromium.")
    parser.add_argument("page")
    parser.add_argument("expected")
    parser.add_argument("--shots", metavar="FOLDER", help="leave the pictures there")
    parser.add_argument("--seconds", type=float, default=60, help="give up after (default 60)")
    arguments = parser.parse_args()
    program = chromium.find()
    if program is None:
        print("skipped: no Chromium is installed (apt-get install chromium)")
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # leaves through __exit__
    checks = Checks()
    try:
        run(arguments, program, checks)
    except (chromium.Failed, OSError, ValueError) as error:
        checks.that(False, str(error))
    for reason in checks.wrong[:20]:
        print("wrong:", reason)
    print(f"{checks.count - len(checks.wrong)} of {checks.count} checks passed")
    return 1 if checks.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
