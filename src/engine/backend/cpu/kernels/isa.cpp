#include "engine/backend/cpu/kernels/isa.h"

#include <fmt/format.h>

#include <algorithm>

namespace halfwatt::cpu {
namespace {

Isa most_of_machine() { return *std::find_if(kIsas.rbegin(), kIsas.rend(), machine_has); }

}  // namespace

std::string_view text(Isa isa) {
  switch (isa) {
    case Isa::portable:
      return "portable";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
    case Isa::avx512_bf16:
      return "avx512_bf16";
  }
  return "unknown";
}

bool machine_has([[maybe_unused]] Isa isa) {
#if HALFWATT_KERNELS_X86
  // These ask the processor and the operating system, which must save the wide registers.
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") &&
                      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  switch (isa) {
    case Isa::portable:
      return true;
    case Isa::avx2:
      return avx2;
    case Isa::avx512:
      return avx512;
    case Isa::avx512_bf16:
      return avx512 && __builtin_cpu_supports("avx512bf16");
  }
#endif
  return isa == Isa::portable;
}

Result<Isa> chosen_isa(const char* wanted) {
  if (wanted == nullptr || *wanted == '\0') {
    return most_of_machine();
  }
  for (const Isa isa : kIsas) {
    if (text(isa) != wanted) {
      continue;
    }
    if (!machine_has(isa)) {
      return bad_input(fmt::format("HALFWATT_ISA={}: this machine has {} at most", wanted,
                                   text(most_of_machine())));
    }
    return isa;
  }
  return bad_input(
      fmt::format("HALFWATT_ISA={}: it takes portable, avx2, avx512 or avx512_bf16", wanted));
}

}  // namespace halfwatt::cpu
