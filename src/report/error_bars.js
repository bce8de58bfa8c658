"use strict";

// Chart.js draws no error bars: this plugin does, from `low` and `high` of each point, in units
// of y and both optional. They lie below the points, within the axes.
const errorBars = {
  id: "errorBars",
  beforeDatasetDraw(chart, { index, meta }) {
    const { ctx, chartArea: area } = chart;
    const { borderColor, data } = chart.data.datasets[index];
    const scale = meta.yScale;
    ctx.save();
    ctx.beginPath();
    ctx.rect(area.left, area.top, area.width, area.height);
    ctx.clip();
    ctx.beginPath();
    meta.data.forEach((element, i) => {
      const { y, low, high } = data[i];
      if (low === undefined && high === undefined) return;
      const bottom = scale.getPixelForValue(Math.max(low ?? y, scale.min));
      const top = scale.getPixelForValue(Math.min(high ?? y, scale.max));
      ctx.moveTo(element.x, bottom);
      ctx.lineTo(element.x, top);
      for (const [end, given] of [[bottom, low], [top, high]]) {
        if (given === undefined || bottom - top < 6) continue; // a cap within the point is noise
        ctx.moveTo(element.x - 3, end);
        ctx.lineTo(element.x + 3, end);
      }
    });
    ctx.strokeStyle = borderColor;
    ctx.lineWidth = 1;
    ctx.stroke();
    ctx.restore();
  },
};
