#pragma once

#include <string>
#include <vector>

namespace halfwatt {

/// What a user says about a file whose names do not say it; empty: not said.
struct ImportOptions {
  std::string x = {};      ///< --x NAME[=UNIT]: the knob's column
  std::string y = {};      ///< --y NAME[=UNIT]: the column with the time or rate
  std::string items = {};  ///< --items NAME: what a step yields, such as "image"
  std::vector<std::string> labels =
      {};  ///< --label NAME: split series by it, whatever it holds
  std::vector<std::string> ignore = {};  ///< --ignore NAME: leave the column out
};

}  // namespace halfwatt
