#include <nlohmann/json.hpp>

#include "engine/plan/summary_text.h"

namespace halfwatt {
namespace {

using Json = nlohmann::ordered_json;

Json whole(Bytes bytes) { return static_cast<std::uint64_t>(bytes.value()); }

Json milliseconds(const std::optional<Seconds>& time) {
  return time ? Json(time->value() * 1e3) : Json();
}

Json of_device(const DeviceSummary& device) {
  const Footprint& bytes = device.footprint;
  return {{"name", device.name},
          {"rates", device.source},
          {"memory_bytes", device.memory ? whole(*device.memory) : Json()},
          {"peak_bytes", bytes.total()},
          {"parameter_bytes", bytes.parameters},
          {"moment_bytes", bytes.moments},
          {"accumulator_bytes", bytes.accumulators},
          {"other_state_bytes", bytes.others},
          {"arena_bytes", bytes.arena},
          {"input_bytes", bytes.inputs},
          {"largest_workspace_bytes", bytes.largest_workspace},
          {"busy_ms", milliseconds(device.busy)},
          {"emulated", device.emulated ? Json(*device.emulated) : Json()}};
}

Json of_layer(const LayerSummary& layer) {
  return {{"layer", layer.layer},
          {"state_bytes", whole(layer.states)},
          {"kept_bytes", whole(layer.kept)},
          {"flops", layer.flops},
          {"bytes_moved", whole(layer.moved)},
          {"busy_ms", milliseconds(layer.busy)}};
}

Json of_product(const UnalignedProduct& product) {
  return {{"layer", product.layer},
          {"phase", text(product.phase)},
          {"extents", product.extents},
          {"padding_percent", product.padding * 100},
          {"most_gain_ms", milliseconds(product.gain)}};
}

}  // namespace

std::string plan_json(const PlanTitle& title, const PlanSummary& summary) {
  Json json = {{"model", title.model},
               {"mode", title.mode},
               {"precision", title.precision},
               {"batch", title.batch},
               {"accumulation", title.micro_batches},
               {"recompute", title.recompute ? "blocks" : "none"},
               {"flops_per_step", summary.flops},
               {"bytes_moved", whole(summary.moved)},
               {"peak_bytes", whole(summary.peak())},
               {"predicted_ms", milliseconds(summary.time)}};
  if (summary.devices.size() > 1) {
    json["bytes_between_devices"] = whole(summary.between);
    json["alone"] = title.alone ? Json{{"device", title.alone->first},
                                       {"predicted_ms", milliseconds(title.alone->second)}}
                                : Json();
    json["split"] = !title.alone || !summary.time ? Json() : Json(!loses(title, summary));
  }
  json["devices"] = Json::array();
  for (const DeviceSummary& device : summary.devices) {
    json["devices"].push_back(of_device(device));
  }
  json["layers"] = Json::array();
  for (const LayerSummary& layer : summary.layers) {
    json["layers"].push_back(of_layer(layer));
  }
  json["unaligned_products"] = Json::array();
  for (const UnalignedProduct& product : summary.unaligned) {
    json["unaligned_products"].push_back(of_product(product));
  }
  json["passes_ms"] = Json::object();
  for (const auto& [name, took] : title.passes) {
    json["passes_ms"][name] = took.value() * 1e3;
  }
  json["remarks"] = title.remarks;
  return json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace halfwatt
