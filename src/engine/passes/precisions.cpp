#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/passes/precision.h"

namespace halfwatt {
namespace {

Precision low(std::string name, DType dtype) {
  Precision row;
  row.name = std::move(name);
  row.compute = row.output = dtype;
  return row;
}

// Autocast: parameters and norms f32, products low.
Precision amp(std::string name, DType dtype) {
  Precision row = low(std::move(name), dtype);
  row.norm = DType::f32;
  row.scale = dtype == DType::f16 ? Precision::Scale::dynamic : Precision::Scale::none;
  return row;
}

// The whole model low, the optimizer's arithmetic and moments f32.
Precision pure(std::string name, DType dtype) {
  Precision row = low(std::move(name), dtype);
  row.parameter = dtype;
  row.images = dtype;
  row.gradient = dtype;
  row.scale = dtype == DType::f16 ? Precision::Scale::dynamic : Precision::Scale::none;
  return row;
}

// Parameters are rounded up or down by chance, in proportion: on average they move by what the
// optimizer says, where rounding to nearest may leave them where they are.
Precision by_chance(std::string name, DType dtype) {
  Precision row = pure(std::move(name), dtype);
  row.stochastic = true;
  return row;
}

std::vector<Precision> make_rows() {
  Precision f64 = low("fp64", DType::f64);  // the reference
  f64.parameter = f64.loss = f64.gradient = f64.accumulated = DType::f64;
  f64.moment = f64.arithmetic = DType::f64;
  f64.images = DType::f64;

  Precision tf32 = low("tf32", DType::f32);
  tf32.compute = DType::tf32;

  // Products of fp8 with fp32 sums; what lies between them as amp-bf16 has it.
  Precision fp8 = amp("fp8", DType::bf16);
  fp8.compute = DType::e4m3;
  Precision fp8_delayed = fp8;
  fp8_delayed.name = "fp8-delayed";
  fp8_delayed.delayed = DelayedScaling{};

  Precision o2 = pure("O2", DType::f16);
  o2.masters = true;

  // `.half()` and PyTorch's unfused optimizers: everything is rounded to f16, the loss too.
  Precision o3 = pure("O3", DType::f16);
  o3.loss = o3.accumulated = o3.moment = o3.arithmetic = DType::f16;
  o3.scale = Precision::Scale::none;

  return {low("fp32", DType::f32),
          tf32,
          amp("amp-fp16", DType::f16),
          amp("amp-bf16", DType::bf16),
          pure("fp16", DType::f16),
          pure("bf16", DType::bf16),
          by_chance("fp16-sr", DType::f16),
          by_chance("bf16-sr", DType::bf16),
          fp8,
          fp8_delayed,
          low("O0", DType::f32),
          amp("O1", DType::f16),
          o2,
          o3,
          f64};
}

Error unknown(std::string_view name) {
  return bad_input(fmt::format("no precision {}; there are {}", name, precision_names()));
}

// "fp16" and "f16" are both what people write.
std::optional<DType> float_named(std::string_view name) {
  std::string plain(name);
  if (plain.substr(0, 2) == "fp") {
    plain.erase(1, 1);
  }
  const auto dtype = dtype_named(plain);
  return dtype && is_float(*dtype) ? dtype : std::nullopt;
}

// jmp's triple, and how products add up: a parameter that is narrower than f32 has its gradient
// narrow, too.
Result<Precision> triple(std::string_view text) {
  Precision row;
  row.name = text;
  std::map<std::string_view, DType*> parts = {{"param", &row.parameter},
                                              {"compute", &row.compute},
                                              {"output", &row.output},
                                              {"accumulate", &row.accumulate}};
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t comma = rest.find(',');
    const std::string_view part = rest.substr(0, comma);
    rest = comma == rest.npos ? "" : rest.substr(comma + 1);
    const std::size_t equals = std::min(part.find('='), part.size());
    const auto known = parts.find(part.substr(0, equals));
    const auto dtype = float_named(part.substr(std::min(equals + 1, part.size())));
    if (known == parts.end() || !dtype) {
      return unknown(text);
    }
    *known->second = *dtype;
    parts.erase(known);  // each once
  }
  parts.erase("accumulate");
  if (!parts.empty()) {
    return unknown(text);
  }
  const bool is_half = row.compute == DType::f16 && row.output == DType::f16;
  if (row.accumulate != DType::f32 && !(row.accumulate == DType::f16 && is_half)) {
    return bad_input(
        fmt::format("precision {}: products add up in fp32, or in fp16 where "
                    "compute and output are fp16",
                    text));
  }
  row.gradient = row.parameter;
  row.images = row.parameter == DType::f32 ? std::nullopt : std::optional(row.parameter);
  row.norm = row.parameter == DType::f32 ? std::optional(DType::f32) : std::nullopt;
  row.scale = row.compute == DType::f16 ? Precision::Scale::dynamic : Precision::Scale::none;
  return row;
}

}  // namespace

std::span<const Precision> precisions() {
  static const std::vector<Precision> rows = make_rows();
  return rows;
}

std::string precision_names() {
  std::string names;
  for (const Precision& row : precisions()) {
    names += row.name + ", ";
  }
  return names + "or param=DTYPE,compute=DTYPE,output=DTYPE and perhaps ,accumulate=fp16";
}

Result<Precision> precision_named(std::string_view name) {
  for (const Precision& row : precisions()) {
    if (row.name == name) {
      return row;
    }
  }
  return name.find('=') == name.npos ? Result<Precision>(unknown(name)) : triple(name);
}

Result<PrecisionOverride> precision_override(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) {
    return bad_input(
        fmt::format("--override {}: needs PATTERN=PRECISION, as in 'head.*=fp32'", text));
  }
  auto precision = precision_named(text.substr(equals + 1));
  if (!precision) {
    return precision.error();
  }
  return PrecisionOverride{std::string(text.substr(0, equals)), std::move(*precision)};
}

}  // namespace halfwatt
