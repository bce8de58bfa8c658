#pragma once

#include <optional>
#include <string>
#include <vector>

#include "measure/series.h"
#include "tune/curve.h"
#include "tune/energy.h"
#include "tune/shape.h"
#include "tune/shares.h"

namespace halfwatt {

/// What one series says.
struct SeriesVerdict {
  Series series;  ///< as it was read; its measurements are the raw rows
  Curve curve;    ///< empty where no window counts
  NumericalState state = NumericalState::unknown;
  std::vector<KeepVerdict> keep;
  std::optional<LeastEnergy> least;
  std::optional<Plateau> plateau;
  std::optional<double> knee;
  std::size_t peak = 0;  ///< index in the curve: fastest, or the lowest of a plateau
  std::vector<std::string> notes;

  /// Whether its figures may be advised: there are some, of work that is known, and the network
  /// lives.
  bool advisable() const;
  /// Whether nothing is known but watts: no progress was looked for.
  bool power_only() const;
  double items_per_step() const;
  std::string unit() const;  ///< of an item
};

/// The one limit for a card on which several workloads run, since people set one.
struct CardVerdict {
  std::string device;
  double percent = 0;
  std::optional<double> limit;  ///< absent where a series does not reach the share at all
  std::string binding_series;   ///< the one that needs it
  bool resolvable = false;      ///< of every series on the card
};

/// A point that no comparable one beats in both speed and energy.
struct ParetoPoint {
  std::size_t series = 0;
  std::size_t point = 0;
  double items_per_second = 0;
  double joules_per_item = 0;
};

/// Series that differ in choices only, and their common front, fastest first.
struct ParetoGroup {
  std::vector<std::size_t> series;
  EnergyBasis basis = EnergyBasis::measured;
  std::vector<ParetoPoint> front;
};

struct AnalysisOptions {
  std::vector<double> keep_percent = {80, 90, 95};
  Reference reference = Reference::top;
  std::string relative_to;  ///< name of the series whose reference speed is 100 % for all
};

/// The answer.
struct Verdict {
  AnalysisOptions options;
  Provenance provenance = Provenance::recorded;
  std::vector<SeriesVerdict> series;
  std::vector<std::string> names;  ///< of the series, short: what tells them apart
  std::string common;              ///< what they share, for a heading
  std::vector<CardVerdict> card;
  std::vector<ParetoGroup> pareto;
};

/// Judges `series`. The same input gives the same verdict. Errors: no series, shares outside
/// (0, 100], or a --relative-to that names no series or one that cannot be compared.
Result<Verdict> analyze(std::vector<Series> series, const AnalysisOptions& options);

/// The answer in one sentence: "300 W instead of 390 W: 5 % slower, 19 % fewer joules."
std::string headline(const Verdict& verdict);

}  // namespace halfwatt
