#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command.h"
#include "engine/models/vit.h"
#include "engine/models/weights.h"
#include "engine/passes/precision.h"

namespace halfwatt {

/// The model that --model and --classes say, and --pool where a command has it. `otherwise` is
/// its name where none is given; if that is empty, one has to be. Errors: no such model, a
/// number or a word that is none, in a line that names the flag.
Result<VitConfig> model_asked(const Invocation& invocation, const std::string& otherwise = {});

/// `--precision MODE`, with every mode that there is in its help.
Option precision_option();

/// The precision that --precision says, fp32 where it is not given. Errors: none of that name.
Result<Precision> precision_asked(const Invocation& invocation);

/// The same of a command whose --precision is a list: each once, in the order given. Errors:
/// none of that name, an empty list.
Result<std::vector<Precision>> precisions_asked(const Invocation& invocation);

/// What --override says, each time it is given. Errors: no PATTERN=PRECISION.
Result<std::vector<PrecisionOverride>> overrides_asked(const Invocation& invocation);

/// Remarks on numbers of the file `path` that are not finite, or are not in `precision`.
void tell_numbers(const std::string& path,
                  const WeightsReport& report,
                  const Precision& precision);

}  // namespace halfwatt
