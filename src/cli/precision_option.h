#pragma once

#include "cli/command.h"

namespace halfwatt {

/// `--precision MODE`, with every mode that there is in its help.
Option precision_option();

}  // namespace halfwatt
