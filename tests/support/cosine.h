#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace halfwatt {

/// Of the angle between two vectors of one length.
inline double cosine(const std::vector<double>& a, const std::vector<double>& b) {
  double both = 0;
  double of_a = 0;
  double of_b = 0;
  for (std::size_t at = 0; at < a.size(); ++at) {
    both += a[at] * b[at];
    of_a += a[at] * a[at];
    of_b += b[at] * b[at];
  }
  return both / std::sqrt(of_a * of_b);
}

}  // namespace halfwatt
