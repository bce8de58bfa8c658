#include "engine/plan/fit.h"

#include <vector>

namespace halfwatt {
namespace {

constexpr std::int64_t kMost = 1 << 16;

// In rising order.
std::vector<std::int64_t> candidates(std::optional<std::int64_t> effective) {
  std::vector<std::int64_t> all;
  const std::int64_t most = effective.value_or(kMost);
  for (std::int64_t batch = 1; batch <= most; ++batch) {
    if (!effective || most % batch == 0) {
      all.push_back(batch);
    }
  }
  return all;
}

class Search {
 public:
  Search(std::optional<std::int64_t> effective, const Excess& excess)
      : effective_(effective), excess_(&excess), batches_(candidates(effective)) {}

  Result<std::optional<StepCut>> run(bool recompute) {
    // The whole batch at once needs no accumulators: it may fit where half of it does not.
    if (const auto whole = fits(batches_.size() - 1, recompute); !whole || *whole) {
      return whole ? found(batches_.size() - 1, recompute)
                   : Result<std::optional<StepCut>>(whole.error());
    }
    std::size_t fit = 0;  // how many of the smallest fit
    std::size_t too_large = batches_.size() - 1;
    while (fit < too_large) {
      const std::size_t middle = fit + (too_large - fit) / 2;
      const auto does = fits(middle, recompute);
      if (!does) {
        return does.error();
      }
      *does ? fit = middle + 1 : too_large = middle;
    }
    return fit == 0 ? std::optional<StepCut>() : found(fit - 1, recompute);
  }

 private:
  StepCut candidate(std::size_t at, bool recompute) const {
    return {batches_[at], effective_ ? *effective_ / batches_[at] : 1, recompute};
  }

  std::optional<StepCut> found(std::size_t at, bool recompute) const {
    return candidate(at, recompute);
  }

  Result<bool> fits(std::size_t at, bool recompute) const {
    const auto more = (*excess_)(candidate(at, recompute));
    return more ? Result<bool>(*more <= 0) : Result<bool>(more.error());
  }

  std::optional<std::int64_t> effective_;
  const Excess* excess_;
  std::vector<std::int64_t> batches_;
};

}  // namespace

Result<std::optional<StepCut>> largest_that_fits(std::optional<std::int64_t> effective,
                                                 const Excess& excess) {
  Search search(effective, excess);
  for (const bool recompute : {false, true}) {
    auto fit = search.run(recompute);
    if (!fit || *fit) {
      return fit;
    }
  }
  return std::optional<StepCut>();
}

}  // namespace halfwatt
