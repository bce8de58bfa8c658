#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "search/curves.h"

namespace halfwatt::bench {

/// The shares of the top speed that every run looks for.
inline constexpr double kShares[] = {80, 90, 95};

/// One search on one curve, judged against the truth.
struct Run {
  int exact = 0;  ///< thresholds that are the true limit
  int off = 0;    ///< thresholds over 10 W off and called resolvable
  int resolved = 0;
  int kept = 0;              ///< thresholds whose true share is the target's less half a point
  double energy_excess = 0;  ///< of the advised limit over the least, relative
  double steps = 0;          ///< run inside windows
  int limits = 0;            ///< distinct ones
};

/// Searches `truth` through the whole measuring protocol on virtual time.
Run run_once(const TrueCurve& truth, const Disturbance& disturbance, std::uint64_t seed);

/// The same for many seeds, on all processors.
std::vector<Run> run_seeds(const TrueCurve& truth, const Disturbance& disturbance, int seeds);

/// Steps of a descending sweep of 25 W with 50 steps a limit, to compare with.
double grid_steps(const TrueCurve& truth);

/// A kind of noise with a name. `window`: relative deviation of a window's median step time;
/// `slow` adds 0.3 % drift over 5 minutes and 1 % of windows that are 3 % slow.
struct Noise {
  std::string name;
  Disturbance disturbance;
  double window = 0;
  bool slow = false;
  int seeds(int wanted) const { return window > 0 || slow ? wanted : 1; }
};
std::vector<Noise> noises();

/// Shares of many runs, in percent.
class Summary {
 public:
  void add(const Run& run, double steps_of_grid);

  double fine() const { return 100 * fine_ / runs_; }  ///< no threshold off
  double exact() const { return 100 * exact_ / thresholds(); }
  double resolved() const { return 100 * resolved_ / thresholds(); }
  double resolved_but_off() const { return resolved_ > 0 ? 100 * off_ / resolved_ : 0; }
  double kept() const { return 100 * kept_ / thresholds(); }
  double energy_within(double percent) const;
  double worst_energy() const { return 100 * worst_energy_; }
  double steps() const { return steps_ / runs_; }  ///< mean, of the grid's
  double most_steps() const { return most_steps_; }
  double limits() const { return limits_ / runs_; }
  int most_limits() const { return most_limits_; }

 private:
  double thresholds() const { return 3 * runs_; }
  double runs_ = 0;
  double fine_ = 0;
  double exact_ = 0;
  double resolved_ = 0;
  double off_ = 0;
  double kept_ = 0;
  std::vector<double> energy_excess_;
  double worst_energy_ = 0;
  double steps_ = 0;
  double most_steps_ = 0;
  double limits_ = 0;
  int most_limits_ = 0;
};

}  // namespace halfwatt::bench
