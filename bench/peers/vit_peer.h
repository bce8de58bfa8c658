#pragma once

// What halfwatt's sides of the scripts beside PyTorch have in common: words that are read,
// numbers that are told, and the optimizer that torch_modes.py has too.

#include <errno.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/device_id.h"
#include "base/result.h"
#include "engine/exec/session.h"
#include "engine/passes/update.h"
#include "engine/tensor/convert.h"

namespace halfwatt {

/// Says in one line what is wrong, and ends the program with status 2.
[[noreturn]] inline void give_up(const std::string& why) {
  fmt::print(stderr, "{}: {}\n", program_invocation_short_name, why);
  std::exit(2);
}

/// The value of a result; gives up where there is none.
template <class T>
T taken(Result<T> result) {
  if (!result) {
    give_up(result.error().message);
  }
  return std::move(*result);
}

/// Gives up where something failed.
inline void done(const Result<void>& result) {
  if (!result) {
    give_up(result.error().message);
  }
}

/// The number that `word` is, of what `name` says; gives up where it is none of 1 to 999999.
inline std::int64_t whole_number(std::string_view name, const std::string& word) {
  constexpr int kMostDigits = 6;
  const bool is_number = !word.empty() && word.size() <= kMostDigits && word[0] != '0' &&
                         word.find_first_not_of("0123456789") == word.npos;
  if (!is_number) {
    give_up(fmt::format("{} {}: needed a whole number of 1 to 999999", name, word));
  }
  return std::stoi(word);
}

/// The device that `word` names; gives up where it is none that computes.
inline DeviceId computing_device(const std::string& word) {
  const auto device = DeviceId::parse(word);
  if (!device ||
      (device->kind != DeviceId::Kind::cpu && device->kind != DeviceId::Kind::gpu_index)) {
    give_up(fmt::format("device {}: needed cpu, or gpu:N for a card", word));
  }
  return *device;
}

/// AdamW as torch_modes.py has it: PyTorch's defaults at that rate.
inline Optimizer pytorchs_adamw(const Precision& precision, double rate) {
  Optimizer adamw;
  adamw.rate = rate;
  adamw.decay = 0.01;
  adamw.decay_all = true;
  if (precision.parameter == DType::f16) {
    adamw.eps = 1e-4;  // 1e-8 is 0 in f16
  }
  return adamw;
}

/// All elements, whatever their dtype.
inline std::vector<double> doubles(const Tensor& tensor) {
  Tensor wide(TensorType{DType::f64, tensor.shape()});
  convert(tensor.view(), wide.view());
  const auto values = wide.as<double>();
  return {values.begin(), values.end()};
}

/// Whether every number is finite.
inline bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}

/// Whether all parameters are finite after a step of training, which is the first plan of
/// `session`, as its tallies say.
inline bool weights_are_finite(const Session& session) {
  const auto& results = session.plan(0).results;
  return std::all_of(results.begin(), results.end(), [&](const PlanResult& each) {
    return each.name.rfind("tally:", 0) != 0 || doubles(session.result(0, each.name))[0] == 0;
  });
}

/// Says to a plan that every image of a batch counts.
inline void bind_valid(Session& session, std::int64_t batch) {
  const std::vector<std::int64_t> count = {batch};
  session.bind(0, "valid", Tensor::of<std::int64_t>(DType::i64, Shape(), count).view());
}

/// Numbers as JSON; null stands for one that is not finite.
inline std::string json_list(const std::vector<double>& values) {
  std::vector<std::string> words;
  words.reserve(values.size());
  for (const double value : values) {
    words.push_back(std::isfinite(value) ? fmt::format("{:.9g}", value) : "null");
  }
  return fmt::format("[{}]", fmt::join(words, ", "));
}

}  // namespace halfwatt
