#include "engine/models/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/check.h"
#include "engine/formats/quoted.h"
#include "engine/models/fine_tuning.h"
#include "engine/models/initial.h"
#include "engine/models/weights_file.h"
#include "engine/ops/delayed_scaling.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

/// The states in which a parameter is held: itself, or copies of it, or both.
using Held = std::map<std::string, std::vector<std::string>, std::less<>>;

bool is_head(std::string_view parameter) { return parameter.starts_with("head."); }

// Whether positions of `stored` shape can become those of `needed` shape.
bool can_resample(std::string_view name, const Shape& stored, const Shape& needed) {
  return name == "pos_embed" && side_of(stored) > 0 && side_of(needed) > 0 &&
         stored[2] == needed[2];
}

Held held_in(const States& states) {
  Held held;
  for (const std::string& name : states.names()) {
    const StateSpec& spec = states.spec(name);
    if (spec.role == StateRole::parameter) {
      held[name].insert(held[name].begin(), name);
    } else if (spec.role == StateRole::copy) {
      held[spec.of].push_back(name);
    }
  }
  return held;
}

// Scales and histories of fp8 operands, each under the name of its state.
std::vector<std::string> fp8_states(const States& states) {
  std::vector<std::string> names;
  for (const std::string& name : states.names()) {
    if (states.spec(name).role == StateRole::amax) {
      names.push_back(name);
    }
  }
  return names;
}

bool is_fp8_state(std::string_view name) {
  return name.ends_with(kFp8Scale) || name.ends_with(kFp8History);
}

const Shape* shape_of(std::string_view parameter, const Held& held, const States& states) {
  const auto found = held.find(parameter);
  return found == held.end() ? nullptr : &states.spec(found->second.front()).type.shape;
}

// Copies follow their parameter; only where it is not there they are set themselves.
Result<void> set(const std::vector<std::string>& held,
                 const TensorView& value,
                 States& states) {
  const bool has_parameter = states.spec(held.front()).role == StateRole::parameter;
  for (std::size_t at = 0; at < (has_parameter ? 1 : held.size()); ++at) {
    if (const auto loaded = states.load(held[at], value); !loaded) {
      return loaded;
    }
  }
  return {};
}

/// Tensors of one kind that are wrong: how many, and the first few.
class Wrong {
 public:
  explicit Wrong(std::string_view kind) : kind_(kind) {}

  void add(const std::string& tensor) {
    constexpr int kNamed = 3;
    if (++count_ <= kNamed) {
      named_ += (named_.empty() ? "" : ", ") + tensor;
    } else if (count_ == kNamed + 1) {
      named_ += ", ...";
    }
  }
  std::string text() const {
    return count_ == 0 ? "" : fmt::format("; {} {} ({})", count_, kind_, named_);
  }

 private:
  std::string_view kind_;
  std::string named_;
  int count_ = 0;
};

// The flags that a user may have forgotten: who learns on wants a head of his own classes, who
// only asks wants the one that there is.
std::string remedy(const WeightsFile& file,
                   const Held& held,
                   const States& states,
                   bool learns) {
  std::string text;
  const StoredTensor* head = file.find("head.weight");
  const Shape* needed = shape_of("head.weight", held, states);
  if (head != nullptr && head->type.shape.rank() == 2 && needed != nullptr &&
      head->type.shape[0] != (*needed)[0]) {
    text += fmt::format("; its head has {} class{}: ", head->type.shape[0],
                        head->type.shape[0] == 1 ? "" : "es");
    text += learns ? fmt::format("--reset-head, which begins one of {} anew", (*needed)[0])
                   : fmt::format("--classes {}", head->type.shape[0]);
  }
  const bool pools_mean = file.find("fc_norm.weight") != nullptr;
  if (pools_mean != (held.count("fc_norm.weight") > 0) &&
      (pools_mean || file.find("norm.weight") != nullptr)) {
    text += fmt::format("; its head sees the {0}: --pool {0}", pools_mean ? "mean" : "token");
  }
  return text;
}

// A training finds its scales; without the histories nobody does, and they have to be there.
Result<void> check_scales(const WeightsFile& file,
                          const std::string& path,
                          const States& states) {
  Wrong missing("fp8 scales are missing");
  for (const std::string& name : fp8_states(states)) {
    const StoredTensor* stored = file.find(name);
    const bool is_scale = name.ends_with(kFp8Scale);
    if (stored == nullptr && is_scale && !states.has(fp8_history_of(name))) {
      missing.add(name);
    }
    const TensorType& needed = states.spec(name).type;
    if (stored != nullptr && !(stored->type == needed)) {
      return bad_input(
          fmt::format("{}: {} {}, needs {}", path, name, text(stored->type), text(needed)));
    }
  }
  if (missing.text().empty()) {
    return {};
  }
  return bad_input(
      fmt::format("{}{}: they are in files that were saved from a training in "
                  "fp8-delayed; --precision fp8 needs none",
                  path, missing.text()));
}

Result<void> check(const WeightsFile& file,
                   const std::string& path,
                   const Held& held,
                   const States& states,
                   const std::optional<FineTuning>& learning) {
  const FineTuning how = learning.value_or(FineTuning{});
  Wrong missing("missing");
  Wrong extra("extra");
  Wrong shaped("of another shape");
  Wrong typed("no floats");
  for (const auto& [name, where] : held) {
    if (file.find(name) == nullptr && !(how.reset_head && is_head(name))) {
      missing.add(name);
    }
  }
  for (const auto& [name, stored] : file.weights()) {
    if (how.reset_head && is_head(name)) {
      continue;
    }
    const Shape* needed = shape_of(name, held, states);
    if (needed == nullptr && is_fp8_state(name)) {
      continue;  // of a training in fp8-delayed: the weights are as good without them
    }
    const Shape& shape = stored->type.shape;
    if (needed == nullptr) {
      extra.add(quoted_name(name));
    } else if (!(shape == *needed) && !(how.resize && can_resample(name, shape, *needed))) {
      shaped.add(fmt::format("{} {}, needs {}", name, text(shape), text(*needed)));
    } else if (!is_float(stored->type.dtype)) {
      typed.add(fmt::format("{} {}", name, text(stored->type.dtype)));
    }
  }
  const std::string wrong = missing.text() + extra.text() + shaped.text() + typed.text();
  if (wrong.empty()) {
    return check_scales(file, path, states);
  }
  return bad_input(fmt::format("{}: not the weights of this model{}{}", path, wrong,
                               remedy(file, held, states, learning.has_value())));
}

std::int64_t not_finite(const TensorView& tensor) {
  Tensor wide(TensorType{DType::f64, tensor.type.shape});
  convert(tensor, wide.view());
  const auto values = wide.as<double>();
  return std::count_if(values.begin(), values.end(),
                       [](double value) { return !std::isfinite(value); });
}

void count(const std::string& name,
           const TensorView& from,
           const std::vector<DType>& to,
           WeightsReport& report) {
  const std::int64_t before = not_finite(from);
  std::int64_t after = before;
  for (const DType dtype : to) {
    Tensor narrow(TensorType{dtype, from.type.shape});
    convert(from, narrow.view());
    after = std::max(after, not_finite(narrow.view()));
  }
  if (before > 0 && report.not_finite == 0) {
    report.first_not_finite = name;
  }
  if (after > before && report.overflowed == 0) {
    report.first_overflowed = name;
  }
  report.not_finite += before;
  report.overflowed += after - before;
  report.converted += from.type.dtype == to.front() ? 0 : 1;
  ++report.tensors;
}

// Those that are in the file.
Result<void> load_fp8_states(const WeightsFile& file, const std::string& path, States& states) {
  for (const std::string& name : fp8_states(states)) {
    const StoredTensor* stored = file.find(name);
    if (stored == nullptr) {
      continue;
    }
    const auto tensor = file.read(*stored);
    if (!tensor) {
      return tensor.error();
    }
    const float first = tensor->as<float>()[0];
    if (name.ends_with(kFp8Scale) && !(first > 0 && std::isfinite(first))) {
      return bad_input(fmt::format("{}: {} is {}, needs a positive number", path, name, first));
    }
    if (const auto loaded = states.load(name, tensor->view()); !loaded) {
      return loaded.error();
    }
  }
  return {};
}

// What the file has of a tensor that is not taken from it.
std::string beside(const StoredTensor* stored) {
  return stored == nullptr ? "" : fmt::format("; the file has {}", text(stored->type.shape));
}

std::vector<DType> dtypes(const std::vector<std::string>& held, const States& states) {
  std::vector<DType> all;
  for (const std::string& name : held) {
    all.push_back(states.spec(name).type.dtype);
  }
  return all;
}

}  // namespace

Result<WeightsReport> load_weights(const std::filesystem::path& path,
                                   States& states,
                                   const std::optional<FineTuning>& learning) {
  const auto file = WeightsFile::open(path);
  if (!file) {
    return file.error();
  }
  const Held held = held_in(states);
  if (const auto right = check(*file, shown(path), held, states, learning); !right) {
    return right.error();
  }
  if (const auto loaded = load_fp8_states(*file, shown(path), states); !loaded) {
    return loaded.error();
  }
  const bool resets_head = learning && learning->reset_head;
  WeightsReport report;
  report.classes = resets_head ? std::vector<std::string>() : class_names_in(file->metadata());
  for (const auto& [name, where] : held) {
    const Shape needed = *shape_of(name, held, states);
    const StoredTensor* stored = file->find(name);
    if (resets_head && is_head(name)) {
      report.changes.push_back(
          fmt::format("{} begins anew as {}{}", name, text(needed), beside(stored)));
      continue;
    }
    auto tensor = file->read(*stored);
    if (!tensor) {
      return tensor.error();
    }
    if (!(stored->type.shape == needed)) {
      const std::int64_t side = side_of(needed);
      report.changes.push_back(fmt::format("{} is resampled from {}x{} patches to {}x{}", name,
                                           side_of(stored->type.shape),
                                           side_of(stored->type.shape), side, side));
      tensor = resampled_positions(tensor->view(), side);
    }
    count(name, tensor->view(), dtypes(where, states), report);
    if (const auto loaded = set(where, tensor->view(), states); !loaded) {
      return loaded.error();
    }
  }
  return report;
}

Result<void> save_weights(const std::filesystem::path& path,
                          const States& states,
                          SavedWeights which,
                          const std::vector<std::string>& classes) {
  const Held held = held_in(states);
  std::map<std::string, std::string> averages;  // by parameter
  for (const std::string& name : states.names()) {
    if (which == SavedWeights::averages && states.spec(name).role == StateRole::average) {
      averages[states.spec(name).of] = name;
    }
  }
  std::vector<Tensor> tensors;
  std::vector<NamedTensor> named;
  for (const auto& [name, where] : held) {
    HALFWATT_CHECK(where.front() == name, "weights are saved where the parameters are held");
    const auto average = averages.find(name);
    tensors.push_back(states.save(average == averages.end() ? name : average->second));
    named.push_back({name, tensors.back().view()});
  }
  const std::vector<std::string> fp8 = fp8_states(states);  // names are views
  for (const std::string& name : fp8) {
    tensors.push_back(states.save(name));
    named.push_back({name, tensors.back().view()});
  }
  return write_safetensors(path, named,
                           classes.empty()
                               ? std::map<std::string, std::string>()
                               : std::map<std::string, std::string>{
                                     {std::string(kClassesKey), class_names_text(classes)}});
}

void draw_weights(States& states, std::uint64_t seed) {
  for (const auto& [name, where] : held_in(states)) {
    StateSpec parameter = states.spec(where.front());
    parameter.name = name;
    const auto done = set(where, initial_value(parameter, seed).view(), states);
    HALFWATT_CHECK(done.has_value(), "a parameter takes a tensor of its own shape");
  }
}

}  // namespace halfwatt
