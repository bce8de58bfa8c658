#include "cli/processor_rates.h"

#include <fmt/format.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "base/remark.h"
#include "device/cpu_model.h"
#include "engine/backend/cpu/kernels/isa.h"
#include "engine/backend/cpu/product_library.h"
#include "workloads/probe_cache.h"
#include "workloads/probes.h"

namespace halfwatt {
namespace {

// All that the rates depend on.
std::string machine(int threads) {
  const auto isa = cpu::chosen_isa(std::getenv("HALFWATT_ISA"));
  return fmt::format("{} {} {} {} threads", cpu_model(), isa ? cpu::text(*isa) : "unknown",
                     cpu::product_library_name(), threads);
}

}  // namespace

Result<OpRates> processor_rates(Backend& backend,
                                int threads,
                                std::span<const Precision> precisions,
                                bool fresh) {
  const std::string called = machine(threads);
  ProbeCache cache(called, probe_file(called));
  OpRates all;
  for (const Precision& precision : precisions) {
    auto rates = fresh ? std::nullopt : cache.find(precision.name);
    if (!rates) {
      remark(fmt::format("measuring how fast {} is in {}, for the predicted times", cpu_model(),
                         precision.name));
      auto measured = probe(backend, precision);
      if (!measured) {
        return measured.error();
      }
      cache.put(precision.name, *measured);
      rates = std::move(*measured);
    }
    all.merge(*rates);
  }
  return all;
}

}  // namespace halfwatt
