#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"

namespace halfwatt {

/// The buffers that outlive a step, by name: what training changes and a checkpoint saves. Any
/// number of sessions bind them; a copy of a parameter is held to be the parameter, rounded.
class States {
 public:
  /// Makes those states on `backend` that are new, every element `initial`; the others must be
  /// the same there. New ones lie in one flat buffer, those of a role one behind the other in
  /// the order given: an optimizer passes over it once. Throws Failure if there is no memory.
  void ensure(std::span<const StateSpec> specs, Backend& backend);
  void ensure(const StateSpec& spec, Backend& backend) { ensure({&spec, 1}, backend); }
  bool has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  const StateSpec& spec(std::string_view name) const { return entry(name).spec; }
  std::vector<std::string> names() const;
  std::byte* data(std::string_view name) const { return entry(name).buffer.data(); }

  /// Sets a state, from any dtype that converts to its own; what are copies of it follow.
  /// Errors: another shape, or a dtype that does not convert.
  Result<void> load(std::string_view name, const TensorView& from);
  Tensor save(std::string_view name) const;

  /// Says that a step wrote this state.
  void written(std::string_view name) { ++entry(name).version; }
  /// Whether a copy is of the version that its parameter has.
  bool is_current(std::string_view copy) const;
  /// Says that a copy was written along with its parameter.
  void copied(std::string_view copy) {
    entry(copy).version = entry(entry(copy).spec.of).version;
  }

 private:
  struct Entry {
    StateSpec spec;
    Backend* backend = nullptr;
    Buffer buffer;
    std::uint64_t version = 0;
  };
  const Entry& entry(std::string_view name) const;
  Entry& entry(std::string_view name);
  void begin(Entry& entry);
  void put(Entry& entry, const TensorView& from);
  void refresh_copies(const Entry& parameter);

  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace halfwatt
