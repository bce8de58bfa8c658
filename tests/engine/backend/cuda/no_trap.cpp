#include "engine/backend/cuda/trap.h"

namespace halfwatt {

// Without GPU code nothing comes so far.
void spring_trap() {}

}  // namespace halfwatt
