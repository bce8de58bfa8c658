#include "engine/graph/attributes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"

namespace halfwatt {
namespace {

std::string value_text(const Attributes::Value& value) {
  struct {
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t number) const { return fmt::format("{}", number); }
    std::string operator()(double number) const { return fmt::format("{:g}", number); }
    std::string operator()(const std::vector<double>& numbers) const {
      return fmt::format("{:g}", fmt::join(numbers, ","));
    }
    std::string operator()(const std::string& word) const { return word; }
    std::string operator()(const Shape& shape) const { return text(shape); }
    std::string operator()(DType dtype) const { return std::string(text(dtype)); }
  } each;
  return std::visit(each, value);
}

}  // namespace

void Attributes::set(std::string_view key, Value value) {
  for (Entry& entry : entries_) {
    if (entry.first == key) {
      entry.second = std::move(value);
      return;
    }
  }
  entries_.emplace_back(key, std::move(value));
}

const Attributes::Value* Attributes::find(std::string_view key) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(),
                                  [&](const Entry& entry) { return entry.first == key; });
  return found == entries_.end() ? nullptr : &found->second;
}

template <class T>
const T& Attributes::get(std::string_view key) const {
  const Value* value = find(key);
  HALFWATT_CHECK(value && std::holds_alternative<T>(*value), "an attribute that an op needs");
  return std::get<T>(*value);
}

template const std::int64_t& Attributes::get(std::string_view) const;
template const double& Attributes::get(std::string_view) const;
template const std::vector<double>& Attributes::get(std::string_view) const;
template const std::string& Attributes::get(std::string_view) const;
template const Shape& Attributes::get(std::string_view) const;
template const DType& Attributes::get(std::string_view) const;

bool Attributes::flag(std::string_view key) const { return has(key) && get<bool>(key); }

std::string text(const Attributes& attributes) {
  std::string all;
  for (const auto& [key, value] : attributes.entries()) {
    all += fmt::format("{}{}={}", all.empty() ? "" : " ", key, value_text(value));
  }
  return all;
}

}  // namespace halfwatt
