#include "engine/exec/states.h"

#include <fmt/format.h>

#include "base/check.h"
#include "engine/tensor/convert.h"

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

void States::ensure(const StateSpec& spec, Backend& backend) {
  const auto [place, is_new] = entries_.try_emplace(spec.name);
  Entry& entry = place->second;
  if (!is_new) {
    HALFWATT_CHECK(entry.spec.type == spec.type && entry.backend == &backend,
                   "a state that two sessions see differently");
    return;
  }
  entry.spec = spec;
  entry.backend = &backend;
  entry.buffer = backend.allocate(aligned(spec.type.bytes()));
  if (spec.role == StateRole::copy && has(spec.of)) {
    refresh_copies(this->entry(spec.of));
  } else {
    backend.upload(entry.buffer.data(), filled(spec.type, spec.initial).view().bytes());
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
  return tensor;
}

bool States::is_current(std::string_view copy) const {
  const Entry& here = entry(copy);
  return !has(here.spec.of) || here.version == entry(here.spec.of).version;
}

}  // namespace halfwatt
