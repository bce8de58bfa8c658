#pragma once

#include <string>
#include <vector>

#include "report/document.h"
#include "tune/verdict.h"

namespace halfwatt {

/// What a person looks at, titled by the answer in one sentence; `title` says what it is about:
/// the table of limits, the limit for the card, notes, charts and raw rows. The terminal leaves
/// out what only a page has room for.
Document verdict_document(const Verdict& verdict, const std::string& title);

/// The charts alone: time of a step, share of the own peak, share of the fastest series, energy
/// an item, Pareto front, and temperature and draw where windows tell them, each over the knob.
std::vector<Chart> verdict_charts(const Verdict& verdict);

}  // namespace halfwatt
