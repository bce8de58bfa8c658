#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace halfwatt {

/// What the labels mean: label 0 is the first name. A checkpoint holds one, so that a model is
/// never trained on, or asked about, labels of another meaning.
class ClassMap {
 public:
  ClassMap() = default;
  explicit ClassMap(std::vector<std::string> names) : names_(std::move(names)) {}
  /// Classes without names of their own: "0" to `count` - 1.
  static ClassMap numbered(std::int64_t count);

  std::int64_t size() const { return static_cast<std::int64_t>(names_.size()); }
  /// `label` must be from 0 to size() - 1.
  const std::string& name(std::int64_t label) const;
  const std::vector<std::string>& names() const { return names_; }

  /// The first difference to `other`, in words that call this map "here" and the other one
  /// "there"; nullopt if every label means the same.
  std::optional<std::string> compare(const ClassMap& other) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace halfwatt
