#include "engine/data/class_map.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "engine/formats/quoted.h"

namespace halfwatt {

ClassMap ClassMap::numbered(std::int64_t count) {
  std::vector<std::string> names;
  for (std::int64_t label = 0; label < count; ++label) {
    names.push_back(std::to_string(label));
  }
  return ClassMap(std::move(names));
}

const std::string& ClassMap::name(std::int64_t label) const {
  HALFWATT_CHECK(label >= 0 && label < size(), "a label of this class map");
  return names_[static_cast<std::size_t>(label)];
}

std::optional<std::string> ClassMap::compare(const ClassMap& other) const {
  const std::int64_t both = std::min(size(), other.size());
  for (std::int64_t label = 0; label < both; ++label) {
    if (name(label) != other.name(label)) {
      return fmt::format("class {} is {} here and {} there", label, quoted_name(name(label)),
                         quoted_name(other.name(label)));
    }
  }
  if (size() == other.size()) {
    return std::nullopt;
  }
  const bool more_here = size() > other.size();
  return fmt::format("{} classes here and {} there: class {}, {}, is only {}", size(),
                     other.size(), both, quoted_name((more_here ? *this : other).name(both)),
                     more_here ? "here" : "there");
}

}  // namespace halfwatt
