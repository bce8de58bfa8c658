#include "cli/precision_option.h"

#include <string>

#include "engine/passes/precision.h"

namespace halfwatt {

Option precision_option() {
  // Options are views of text that stays.
  static const std::string help =
      precision_names() + "; fp32 is the default, docs/commands.md says what each is";
  return {"--precision", "MODE", help};
}

}  // namespace halfwatt
