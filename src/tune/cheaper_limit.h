#pragma once

#include <optional>
#include <set>
#include <span>

#include "tune/curve.h"
#include "tune/search.h"

namespace halfwatt {

/// How much a further limit must promise to save to be worth a window.
enum class Thrift {
  large,  ///< a third of a percent or more: looked for while shares are still open
  small,  ///< all that the answer needs
};

/// The next limit in a search for the least energy, or nullopt where it is found: further down
/// while the lowest measured limit is the cheapest; then wherever between the cheapest and its
/// neighbours convexity leaves room for something cheaper. Rests on energy having one minimum.
/// `curve`: not empty, its noise known. `tried`: limits that were asked for already.
std::optional<double> cheaper_limit(const Curve& curve,
                                    const LimitSpace& space,
                                    const std::set<double>& tried,
                                    Thrift thrift);

}  // namespace halfwatt
