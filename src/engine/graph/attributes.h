#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace halfwatt {

/// What an op is to do beyond its inputs: `heads=12`, `eps=1e-06`, `mean=0.5,0.5,0.5`.
class Attributes {
 public:
  using Value =
      std::variant<bool, std::int64_t, double, std::vector<double>, std::string, Shape, DType>;
  using Entry = std::pair<std::string, Value>;

  Attributes() = default;
  Attributes(std::initializer_list<Entry> entries) : entries_(entries) {}

  /// In the order in which they were set.
  const std::vector<Entry>& entries() const { return entries_; }
  void set(std::string_view key, Value value);
  bool has(std::string_view key) const { return find(key) != nullptr; }

  /// What `key` is. It must be there and of that type, except that an absent flag is false.
  bool flag(std::string_view key) const;
  std::int64_t integer(std::string_view key) const { return get<std::int64_t>(key); }
  double number(std::string_view key) const { return get<double>(key); }
  const std::vector<double>& numbers(std::string_view key) const {
    return get<std::vector<double>>(key);
  }
  const std::string& word(std::string_view key) const { return get<std::string>(key); }
  const Shape& shape(std::string_view key) const { return get<Shape>(key); }
  DType dtype(std::string_view key) const { return get<DType>(key); }

  bool operator==(const Attributes&) const = default;

 private:
  const Value* find(std::string_view key) const;
  template <class T>
  const T& get(std::string_view key) const;
  std::vector<Entry> entries_;
};

/// "heads=12 eps=1e-06".
std::string text(const Attributes& attributes);

}  // namespace halfwatt
