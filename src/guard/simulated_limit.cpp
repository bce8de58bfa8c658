#include "guard/simulated_limit.h"

namespace halfwatt {

Result<Watts> SimulatedLimit::read() {
  const Result<Sample> sample = card_->read();
  if (!sample) {
    return sample.error();
  }
  return Watts(*(*sample)[SignalId::requested_limit]);
}

}  // namespace halfwatt
