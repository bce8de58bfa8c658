#include <algorithm>

#include "engine/passes/precision.h"

namespace halfwatt {
namespace {

// Where the set that begins at `pattern[0]`, a bracket, ends; npos if it does not.
std::size_t set_end(std::string_view pattern) { return pattern.find(']', 1); }

bool in_set(std::string_view set, char letter) {
  for (std::size_t at = 0; at < set.size(); ++at) {
    if (at + 2 < set.size() && set[at + 1] == '-') {
      if (set[at] <= letter && letter <= set[at + 2]) {
        return true;
      }
      at += 2;
    } else if (set[at] == letter) {
      return true;
    }
  }
  return false;
}

}  // namespace

bool matches(std::string_view pattern, std::string_view path) {
  if (pattern.empty()) {
    return path.empty();
  }
  if (pattern[0] == '*') {
    if (pattern.size() > 1 && pattern[1] == '*') {
      return matches(pattern.substr(1), path);
    }
    for (std::size_t skip = 0; skip <= path.size(); ++skip) {
      if (matches(pattern.substr(1), path.substr(skip))) {
        return true;
      }
    }
    return false;
  }
  if (path.empty()) {
    return false;
  }
  if (const std::size_t end = set_end(pattern); pattern[0] == '[' && end != pattern.npos) {
    return in_set(pattern.substr(1, end - 1), path[0]) &&
           matches(pattern.substr(end + 1), path.substr(1));
  }
  return pattern[0] == path[0] && matches(pattern.substr(1), path.substr(1));
}

bool covers(std::string_view pattern, const std::string& layer) {
  return matches(pattern, layer) || matches(pattern, layer + ".");
}

bool any_names(std::span<const std::string> patterns, const std::string& parameter) {
  return std::any_of(patterns.begin(), patterns.end(), [&](const std::string& pattern) {
    std::size_t end = parameter.size();
    while (end != parameter.npos) {
      if (matches(pattern, std::string_view(parameter).substr(0, end))) {
        return true;
      }
      end = end == 0 ? parameter.npos : parameter.rfind('.', end - 1);
    }
    return false;
  });
}

}  // namespace halfwatt
