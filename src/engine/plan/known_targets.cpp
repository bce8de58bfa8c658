#include "engine/plan/known_targets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/ops/op_def.h"

namespace halfwatt {
namespace {

constexpr double kTera = 1e12;
constexpr double kGiga = 1e9;
constexpr double kGiB = 1024.0 * 1024 * 1024;

// cuBLASLt's fast algorithms ask for this much: section 2 of the facts on GPU performance.
constexpr std::size_t kProductWorkspace = std::size_t{32} << 20;
// Between kernels of a captured graph about 1 us, outside one 3 to 5.
constexpr double kLaunch = 2e-6;
constexpr double kLinkLatency = 10e-6;
// One direction, as copies reach it.
constexpr double kPcie3 = 12 * kGiga;
constexpr double kPcie4 = 25 * kGiga;

struct Rates {
  std::string_view name;
  double memory_gib;
  double gigabytes_per_second;
  double link;
  std::string_view source;
  std::vector<std::pair<DType, double>> tera;  // products with fp32 sums, no sparsity
};

// Sustained rates where somebody measured them: a long step runs at the power limit, well below
// a data sheet's peak.
std::vector<Rates> known_rates() {
  return {
      {"h200",
       139,
       4300,
       370 * kGiga,
       "measured on one H200 at its power limit; fp64: data sheet",
       {{DType::f64, 67},
        {DType::f32, 51},
        {DType::tf32, 370},
        {DType::f16, 633},
        {DType::bf16, 661},
        {DType::e4m3, 1193},
        {DType::e5m2, 1193}}},
      {"a100",
       80,
       2039,
       300 * kGiga,
       "A100 80GB SXM: fp16 and bf16 as measured with random data, else data sheet",
       {{DType::f64, 19.5},
        {DType::f32, 19.5},
        {DType::tf32, 156},
        {DType::f16, 257},
        {DType::bf16, 257}}},
      {"rtx3090",
       24,
       936,
       kPcie4,
       "data sheet: a real step is slower",
       {{DType::f64, 0.556},
        {DType::f32, 35.6},
        {DType::tf32, 35.6},
        {DType::f16, 71},
        {DType::bf16, 71}}},
      {"rtx4090",
       24,
       1008,
       kPcie4,
       "data sheet: a real step is slower",
       {{DType::f64, 1.29},
        {DType::f32, 82.6},
        {DType::tf32, 82.6},
        {DType::f16, 165.2},
        {DType::bf16, 165.2},
        {DType::e4m3, 330.3},
        {DType::e5m2, 330.3}}},
      // 16 GiB less what its ECC takes.
      {"t4",
       15,
       320,
       kPcie3,
       "data sheet: a real step is slower",
       {{DType::f64, 0.254}, {DType::f32, 8.1}, {DType::f16, 65}}},
  };
}

// As users write precisions; e4m3 stands for both fp8.
constexpr std::array<std::pair<std::string_view, DType>, 6> kPrecisions = {
    {{"fp64", DType::f64},
     {"fp32", DType::f32},
     {"tf32", DType::tf32},
     {"fp16", DType::f16},
     {"bf16", DType::bf16},
     {"fp8", DType::e4m3}}};

// A device computes products of what it has a rate for, and everything else in any dtype.
Support support_by_rates(const Target& target, const Graph& graph, int id) {
  const Node& node = graph.node(id);
  if (definition(node.op).numeric != NumericClass::gemm) {
    return {};
  }
  const DType dtype = operands_of(graph, node);
  if (target.flops.count(dtype) != 0) {
    return {};
  }
  std::string has;
  for (const auto& [precision, known] : kPrecisions) {
    if (target.flops.count(known) != 0) {
      has += fmt::format("{}{}", has.empty() ? "" : ", ", precision);
    }
  }
  return {Support::Kind::refused,
          fmt::format("it has no products of {}, only of {}", text(dtype), has)};
}

std::size_t workspace_of(const Graph& graph, int id, std::size_t product) {
  const Node& node = graph.node(id);
  if (node.op == Op::attention_gradient) {
    // The gradient of the queries is added up in fp32.
    return static_cast<std::size_t>(node.outputs[0].shape.elements() / 3) * sizeof(float);
  }
  const bool is_product =
      definition(node.op).numeric == NumericClass::gemm && node.op != Op::attention;
  return is_product ? product : 0;
}

Target finished(Target target, std::size_t product_workspace) {
  target.id = {DeviceId::Kind::simulated, target.name};
  target.feeds_ahead = true;  // they are GPUs
  target.workspace = [product_workspace](const Graph& graph, int id) {
    return workspace_of(graph, id, product_workspace);
  };
  Target rates = target;  // without functions of its own
  rates.workspace = nullptr;
  target.support = [rates](const Graph& graph, int id) {
    return support_by_rates(rates, graph, id);
  };
  return target;
}

Target target_of(const Rates& rates, const std::string& name) {
  Target target;
  target.name = name;
  target.memory = Bytes(rates.memory_gib * kGiB);
  for (const auto& [dtype, tera] : rates.tera) {
    target.flops[dtype] = tera * kTera;
  }
  target.bytes_per_second = rates.gigabytes_per_second * kGiga;
  target.launch = Seconds(kLaunch);
  target.link = rates.link;
  target.latency = Seconds(kLinkLatency);
  target.source = rates.source;
  return finished(std::move(target), kProductWorkspace);
}

// A name alone: what this machine's processors can do only a backend knows, and their rates are
// measured.
Target cpu(const std::string& name) {
  Target target;
  target.name = name;
  target.source = "not measured yet";
  return target;
}

// "t4" of "t4:1".
std::string_view without_number(std::string_view name) {
  const std::size_t colon = name.rfind(':');
  const bool numbered = colon != name.npos && colon + 1 < name.size() &&
                        name.find_first_not_of("0123456789", colon + 1) == name.npos;
  return numbered ? name.substr(0, colon) : name;
}

constexpr double kMost = 1e18;  // so that bytes fit what they are counted in

class Fields {
 public:
  Fields(const nlohmann::json& json, std::string where)
      : json_(&json), where_(std::move(where)) {}

  Error error(std::string_view key, std::string_view needed) const {
    return bad_input(fmt::format("{}: field {}: needed {}", where_, key, needed));
  }

  std::optional<Error> known(const std::vector<std::string_view>& keys) const {
    for (const auto& [key, value] : json_->items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        return bad_input(fmt::format("{}: field {}: not known; there are {}", where_, key,
                                     fmt::join(keys, ", ")));
      }
    }
    return {};
  }

  Result<double> number(const std::string& key, std::optional<double> otherwise) const {
    if (!json_->contains(key) && otherwise) {
      return *otherwise;
    }
    if (!json_->contains(key) || !(*json_)[key].is_number() ||
        !((*json_)[key].get<double>() > 0 && (*json_)[key].get<double>() <= kMost)) {
      return error(key, "a number above 0 and up to 1e18");
    }
    return (*json_)[key].get<double>();
  }

  Result<std::string> word(const std::string& key, std::optional<std::string> otherwise) const {
    if (!json_->contains(key) && otherwise) {
      return *otherwise;
    }
    if (!json_->contains(key) || !(*json_)[key].is_string()) {
      return error(key, "a text");
    }
    return (*json_)[key].get<std::string>();
  }

 private:
  const nlohmann::json* json_;
  std::string where_;
};

Result<std::map<DType, double>> read_flops(const nlohmann::json& json,
                                           const std::string& where) {
  if (!json.contains("flops_per_second") || !json["flops_per_second"].is_object()) {
    return Fields(json, where)
        .error("flops_per_second", "an object with a rate for each precision");
  }
  const Fields fields(json["flops_per_second"], where);
  std::vector<std::string_view> names;
  for (const auto& [name, dtype] : kPrecisions) {
    names.push_back(name);
  }
  if (const auto unknown = fields.known(names)) {
    return *unknown;
  }
  std::map<DType, double> flops;
  for (const auto& [name, dtype] : kPrecisions) {
    if (json["flops_per_second"].contains(name)) {
      const auto rate = fields.number(std::string(name), std::nullopt);
      if (!rate) {
        return rate.error();
      }
      flops[dtype] = *rate;
    }
  }
  if (flops.empty()) {
    return Fields(json, where).error("flops_per_second", "one rate at least");
  }
  if (const auto fp8 = flops.find(DType::e4m3); fp8 != flops.end()) {
    flops[DType::e5m2] = fp8->second;
  }
  return flops;
}

struct NumberField {
  const char* key;
  std::optional<double> otherwise;
  double* value;
};

}  // namespace

std::vector<std::string> known_targets() {
  std::vector<std::string> names;
  for (const Rates& rates : known_rates()) {
    names.emplace_back(rates.name);
  }
  names.emplace_back("cpu");
  return names;
}

Result<Target> target_named(const std::string& name) {
  const std::string_view kind = without_number(name);
  for (const Rates& rates : known_rates()) {
    if (rates.name == kind) {
      return target_of(rates, name);
    }
  }
  if (kind == "cpu") {
    return cpu(name);
  }
  std::ifstream file(name, std::ios::binary);
  std::ostringstream content;
  if (!file || !(content << file.rdbuf())) {
    return bad_input(fmt::format("no target {}; there are {}, or a JSON file", name,
                                 fmt::join(known_targets(), ", ")));
  }
  return target_of_json(content.str(), name);
}

Result<Target> target_of_json(std::string_view json, const std::string& where) {
  const auto parsed = nlohmann::json::parse(json, nullptr, false);
  if (!parsed.is_object()) {
    return bad_input(fmt::format("{}: no JSON object of a target", where));
  }
  const Fields fields(parsed, where);
  if (const auto unknown = fields.known(
          {"name", "memory_bytes", "flops_per_second", "bytes_per_second", "launch_s",
           "link_bytes_per_second", "link_latency_s", "workspace_bytes", "source"})) {
    return *unknown;
  }
  const auto name = fields.word("name", std::nullopt);
  const auto source = fields.word("source", where);
  const auto flops = read_flops(parsed, where);
  if (!name || !source || !flops) {
    return !name ? name.error() : !source ? source.error() : flops.error();
  }
  double memory = 0;
  double bytes = 0;
  double launch = 0;
  double link = 0;
  double latency = 0;
  double workspace = 0;
  for (const NumberField& each :
       {NumberField{"memory_bytes", std::nullopt, &memory},
        NumberField{"bytes_per_second", std::nullopt, &bytes},
        NumberField{"launch_s", kLaunch, &launch},
        NumberField{"link_bytes_per_second", kPcie4, &link},
        NumberField{"link_latency_s", kLinkLatency, &latency},
        NumberField{"workspace_bytes", double{kProductWorkspace}, &workspace}}) {
    const auto number = fields.number(each.key, each.otherwise);
    if (!number) {
      return number.error();
    }
    *each.value = *number;
  }
  Target target;
  target.name = *name;
  target.source = *source;
  target.memory = Bytes(memory);
  target.flops = *flops;
  target.bytes_per_second = bytes;
  target.launch = Seconds(launch);
  target.link = link;
  target.latency = Seconds(latency);
  return finished(std::move(target), static_cast<std::size_t>(workspace));
}

}  // namespace halfwatt
