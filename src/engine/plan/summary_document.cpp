#include <fmt/format.h>

#include <array>

#include "engine/plan/summary_text.h"

namespace halfwatt {
namespace {

std::string time_text(const std::optional<Seconds>& time) {
  return time ? fmt::format("{:.2f} ms", time->value() * 1e3) : "unknown";
}

std::string flops_text(double flops) {
  return flops >= 1e11 ? fmt::format("{:.2f} TFLOP", flops / 1e12)
                       : fmt::format("{:.2f} GFLOP", flops / 1e9);
}

std::string head_text(const PlanTitle& title, const PlanSummary& summary) {
  std::string text = fmt::format(
      "A step of {} images{}{}: {}, {} to and from memory, {} at its peak, predicted {}",
      title.images(),
      title.micro_batches > 1
          ? fmt::format(" in {} micro-batches of {}", title.micro_batches, title.batch)
          : "",
      title.recompute ? ", blocks computed twice" : "", flops_text(summary.flops),
      bytes_text(summary.moved), bytes_text(summary.peak()), time_text(summary.time));
  if (summary.time) {
    text += fmt::format(" ({:.0f} images/s)",
                        static_cast<double>(title.images()) / summary.time->value());
  }
  return text + ".";
}

Table memory_table(const PlanSummary& summary) {
  Table table{"Memory", {{"", false}}};
  for (const DeviceSummary& device : summary.devices) {
    table.columns.push_back({device.name});
  }
  using Part = std::pair<const char*, std::size_t (*)(const Footprint&)>;
  const std::array<Part, 7> parts = {{
      {"parameters and copies", [](const Footprint& all) { return all.parameters; }},
      {"optimizer's moments", [](const Footprint& all) { return all.moments; }},
      {"accumulated gradients", [](const Footprint& all) { return all.accumulators; }},
      {"other states", [](const Footprint& all) { return all.others; }},
      {"activations, gradients, workspace", [](const Footprint& all) { return all.arena; }},
      {"inputs", [](const Footprint& all) { return all.inputs; }},
      {"together", [](const Footprint& all) { return all.total(); }},
  }};
  for (const auto& [name, part] : parts) {
    std::vector<Cell> row = {{name}};
    for (const DeviceSummary& device : summary.devices) {
      row.push_back({bytes_text(Bytes(static_cast<double>(part(device.footprint))))});
    }
    table.rows.push_back(std::move(row));
  }
  std::vector<Cell> has = {{"memory of the device"}};
  std::vector<Cell> busy = {{"busy in a step"}};
  for (const DeviceSummary& device : summary.devices) {
    has.push_back({device.memory ? bytes_text(*device.memory) : "unknown"});
    busy.push_back({time_text(device.busy)});
  }
  table.rows.push_back(std::move(has));
  table.rows.push_back(std::move(busy));
  return table;
}

Table layer_table(const PlanSummary& summary) {
  Table table{
      "Layers",
      {{"layer", false}, {"states"}, {"kept for backward"}, {"FLOPs"}, {"moved"}, {"busy"}}};
  for (const LayerSummary& layer : summary.layers) {
    table.rows.push_back({{layer.layer},
                          {bytes_text(layer.states)},
                          {bytes_text(layer.kept)},
                          {flops_text(layer.flops)},
                          {bytes_text(layer.moved)},
                          {time_text(layer.busy)}});
  }
  return table;
}

std::string product_text(const UnalignedProduct& product) {
  const std::string gain = !product.gain ? "an unknown time"
                           : *product.gain < Seconds(0.5e-6)
                               ? "nothing"
                               : fmt::format("{:.0f} us at most", product.gain->value() * 1e6);
  return fmt::format("{}, {}: {} has rows of no whole 16 bytes; padding them gains {}",
                     product.layer, text(product.phase), product.extents, gain);
}

Note split_note(const PlanTitle& title, const PlanSummary& summary) {
  const std::string moved = bytes_text(summary.between);
  if (!title.alone) {
    return {
        fmt::format("{} go from device to device in a step; no device is known to compute "
                    "it alone",
                    moved)};
  }
  const bool lost = loses(title, summary);
  return {fmt::format("{}: {} go from device to device in a step, which takes {}; {} alone "
                      "takes {}",
                      lost ? "Do not split" : "The split wins", moved, time_text(summary.time),
                      title.alone->first, time_text(title.alone->second)),
          lost};
}

}  // namespace

std::string bytes_text(Bytes bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = bytes.value();
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", value)
                   : fmt::format("{:.{}f} {}", value, value < 10 ? 2 : 1, kUnits[unit]);
}

bool loses(const PlanTitle& title, const PlanSummary& summary) {
  return title.alone && summary.time && *summary.time >= title.alone->second;
}

Document plan_document(const PlanTitle& title, const PlanSummary& summary) {
  Document document{fmt::format("Plan: {} {}, {}, batch {}", title.mode, title.model,
                                title.precision, title.batch),
                    "predicted"};
  document.blocks.push_back(Paragraph{head_text(title, summary)});
  if (summary.devices.size() > 1) {
    document.blocks.push_back(split_note(title, summary));
  }
  document.blocks.push_back(memory_table(summary));
  document.blocks.push_back(layer_table(summary));
  for (const UnalignedProduct& product : summary.unaligned) {
    document.blocks.push_back(Note{product_text(product)});
  }
  for (const std::string& remark : title.remarks) {
    document.blocks.push_back(Note{remark, true});
  }
  for (const DeviceSummary& device : summary.devices) {
    if (device.emulated.value_or(false)) {
      document.blocks.push_back(Note{
          fmt::format("emulated: {} has not every format of {}, and rounds in fp32 to what "
                      "it has not; no measure of such a device's speed",
                      device.name, title.precision)});
    }
    document.blocks.push_back(Note{fmt::format("rates of {}: {}", device.name, device.source)});
  }
  return document;
}

}  // namespace halfwatt
