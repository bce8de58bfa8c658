#include "engine/models/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"
#include "engine/formats/quoted.h"
#include "engine/formats/safetensors.h"
#include "engine/models/initial.h"
#include "engine/tensor/convert.h"

namespace halfwatt {
namespace {

std::vector<std::string> parameters(const States& states) {
  std::vector<std::string> names = states.names();
  std::erase_if(names, [&](const std::string& name) {
    return states.spec(name).role != StateRole::parameter;
  });
  return names;
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

// The flags that a user may have forgotten.
std::string remedy(const SafetensorsFile& file, const States& states) {
  std::string text;
  const StoredTensor* head = file.find("head.weight");
  if (head != nullptr && head->type.shape.rank() == 2 && states.has("head.weight") &&
      head->type.shape[0] != states.spec("head.weight").type.shape[0]) {
    text += fmt::format("; its head has {0} class{1}: --classes {0}", head->type.shape[0],
                        head->type.shape[0] == 1 ? "" : "es");
  }
  const bool pools_mean = file.find("fc_norm.weight") != nullptr;
  if (pools_mean != states.has("fc_norm.weight") &&
      (pools_mean || file.find("norm.weight") != nullptr)) {
    text += fmt::format("; its head sees the {0}: --pool {0}", pools_mean ? "mean" : "token");
  }
  return text;
}

Result<void> check(const SafetensorsFile& file, const std::string& path, const States& states) {
  Wrong missing("missing");
  Wrong extra("extra");
  Wrong shaped("of another shape");
  Wrong typed("no floats");
  for (const std::string& name : parameters(states)) {
    if (file.find(name) == nullptr) {
      missing.add(name);
    }
  }
  for (const StoredTensor& each : file.header().tensors) {
    const bool known =
        states.has(each.name) && states.spec(each.name).role == StateRole::parameter;
    if (!known) {
      extra.add(quoted_name(each.name));
    } else if (const Shape& needed = states.spec(each.name).type.shape;
               !(each.type.shape == needed)) {
      shaped.add(
          fmt::format("{} {}, needs {}", each.name, text(each.type.shape), text(needed)));
    } else if (!is_float(each.type.dtype)) {
      typed.add(fmt::format("{} {}", each.name, text(each.type.dtype)));
    }
  }
  const std::string wrong = missing.text() + extra.text() + shaped.text() + typed.text();
  if (wrong.empty()) {
    return {};
  }
  return bad_input(
      fmt::format("{}: not the weights of this model{}{}", path, wrong, remedy(file, states)));
}

std::int64_t not_finite(const TensorView& tensor) {
  Tensor wide(TensorType{DType::f64, tensor.type.shape});
  convert(tensor, wide.view());
  const auto values = wide.as<double>();
  return std::count_if(values.begin(), values.end(),
                       [](double value) { return !std::isfinite(value); });
}

// `to`: the dtypes that the parameter has as a state and in its copies.
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

std::vector<DType> dtypes(const std::string& parameter, const States& states) {
  std::vector<DType> all = {states.spec(parameter).type.dtype};
  for (const std::string& name : states.names()) {
    const StateSpec& spec = states.spec(name);
    if (spec.role == StateRole::copy && spec.of == parameter) {
      all.push_back(spec.type.dtype);
    }
  }
  return all;
}

}  // namespace

Result<WeightsReport> load_weights(const std::filesystem::path& path, States& states) {
  const auto file = SafetensorsFile::open(path);
  if (!file) {
    return file.error();
  }
  if (const auto right = check(*file, shown(path), states); !right) {
    return right.error();
  }
  WeightsReport report;
  for (const StoredTensor& stored : file->header().tensors) {
    const auto tensor = file->read(stored);
    if (!tensor) {
      return tensor.error();
    }
    count(stored.name, tensor->view(), dtypes(stored.name, states), report);
    if (const auto loaded = states.load(stored.name, tensor->view()); !loaded) {
      return loaded.error();
    }
  }
  return report;
}

Result<void> save_weights(const std::filesystem::path& path, const States& states) {
  const std::vector<std::string> names = parameters(states);
  std::vector<Tensor> tensors;
  std::vector<NamedTensor> named;
  for (const std::string& name : names) {
    tensors.push_back(states.save(name));
    named.push_back({name, tensors.back().view()});
  }
  return write_safetensors(path, named);
}

void draw_weights(States& states, std::uint64_t seed) {
  for (const std::string& name : parameters(states)) {
    const auto done = states.load(name, initial_value(states.spec(name), seed).view());
    HALFWATT_CHECK(done.has_value(), "a parameter takes a tensor of its own shape");
  }
}

}  // namespace halfwatt
