#include "engine/exec/states.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/tensor/convert.h"
#include "engine/tensor/panels.h"

namespace halfwatt {
namespace {

Tensor filled(const TensorType& type, double value) {
  Tensor tensor(type);
  if (!is_float(type.dtype)) {
    HALFWATT_CHECK(value == 0, "a state of integers begins at 0");
    const auto bytes = tensor.view().bytes();
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    return tensor;
  }
  const std::vector<double> values(static_cast<std::size_t>(type.shape.elements()), value);
  convert(Tensor::of<double>(DType::f64, type.shape, values).view(), tensor.view());
  return tensor;
}

}  // namespace

const States::Entry& States::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  HALFWATT_CHECK(found != entries_.end(), "a state that was made");
  return found->second;
}

States::Entry& States::entry(std::string_view name) {
  return const_cast<Entry&>(std::as_const(*this).entry(name));
}

void States::ensure(std::span<const StateSpec> specs, Backend& backend) {
  std::vector<const StateSpec*> fresh;
  for (const StateSpec& spec : specs) {
    const auto found = entries_.find(spec.name);
    HALFWATT_CHECK(found == entries_.end() || (found->second.spec.type == spec.type &&
                                               found->second.backend == &backend),
                   "a state that two sessions see differently");
    if (found == entries_.end()) {
      fresh.push_back(&spec);
    }
  }
  std::stable_sort(
      fresh.begin(), fresh.end(),
      [](const StateSpec* one, const StateSpec* other) { return one->role < other->role; });
  std::size_t bytes = 0;
  for (const StateSpec* spec : fresh) {
    bytes += aligned(spec->type.bytes());
  }
  const Buffer all = fresh.empty() ? Buffer() : backend.allocate(bytes);
  std::size_t offset = 0;
  for (const StateSpec* spec : fresh) {
    const std::size_t own = aligned(spec->type.bytes());
    entries_[spec->name] = {*spec, &backend, all.part(offset, own)};
    offset += own;
    begin(entry(spec->name));
  }
}

// A copy of a parameter that is there begins as that, rounded.
void States::begin(Entry& entry) {
  if (entry.spec.role == StateRole::copy && has(entry.spec.of)) {
    refresh_copies(this->entry(entry.spec.of));
  } else {
    entry.backend->upload(entry.buffer.data(),
                          filled(entry.spec.type, entry.spec.initial).view().bytes());
  }
}

std::vector<std::string> States::names() const {
  std::vector<std::string> all;
  for (const auto& [name, entry] : entries_) {
    all.push_back(name);
  }
  return all;
}

Result<void> States::load(std::string_view name, const TensorView& from) {
  Entry& to = entry(name);
  if (!(from.type.shape == to.spec.type.shape)) {
    return bad_input(
        fmt::format("{}: found {}, needs {}", name, text(from.type), text(to.spec.type)));
  }
  if (!can_convert(from.type.dtype, to.spec.type.dtype)) {
    return bad_input(fmt::format("{}: {} does not convert to {}", name, text(from.type.dtype),
                                 text(to.spec.type.dtype)));
  }
  put(to, from);
  ++to.version;
  refresh_copies(to);
  return {};
}

void States::put(Entry& entry, const TensorView& from) {
  Tensor converted(entry.spec.type);
  convert(from, converted.view());
  if (const Panels& panels = entry.spec.panels; panels.columns > 0) {
    Tensor laid_out(entry.spec.type);
    to_panels(converted.view(), panels.columns, panels.steps, laid_out.view());
    converted = std::move(laid_out);
  }
  entry.backend->upload(entry.buffer.data(), converted.view().bytes());
}

void States::refresh_copies(const Entry& parameter) {
  for (auto& [name, copy] : entries_) {
    if (copy.spec.role == StateRole::copy && copy.spec.of == parameter.spec.name) {
      put(copy, save(parameter.spec.name).view());
      copy.version = parameter.version;
    }
  }
}

Tensor States::save(std::string_view name) const {
  const Entry& from = entry(name);
  Tensor tensor(from.spec.type);
  from.backend->download(tensor.view().bytes(), from.buffer.data());
  if (const Panels& panels = from.spec.panels; panels.columns > 0) {
    Tensor matrix(from.spec.type);
    from_panels(tensor.view(), panels.columns, panels.steps, matrix.view());
    return matrix;
  }
  return tensor;
}

bool States::is_current(std::string_view copy) const {
  const Entry& here = entry(copy);
  return !has(here.spec.of) || here.version == entry(here.spec.of).version;
}

}  // namespace halfwatt
